//! Looks token ids up in an embedding table of any weight format.

use super::matmul::{Matmul, product};
use crate::elementwise::add::{Add, add};
use crate::elementwise::scale::{Scale, scale};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::record::{LowRank, Recorder};
use crate::graph::tensor::{Counts, Input, Lead, Shape, State, Tensor, Weight};
use crate::graph::values::Values;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::kernel::split::parts;

kernel! {
    EMBED: "embed",
    wgsl: ["matmul/embed.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, rows: u32, row_base: u32, row_count: u32, capacity: u32, scale: f32 },
    bindings: Bind { tokens: Read, positions: Read, sequences: Read, table: Weight(Any), y: Write },
    cpu: cpu_ref::embed,
    nmse: 1e-12,
    needs: { threads: 64, workgroup_bytes: 0 },
}

/// Where the token ids of the rows come from.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Ids {
    /// In a state, at the position of the row in its sequence.
    State { tokens: State, positions: Tensor, sequences: Tensor },
    /// In a tensor \[T\], which `numbers` (0, 1, 2 and so on) indexes.
    Step { ids: Tensor, numbers: Tensor },
}

impl Values for Ids {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        match self {
            Self::State { tokens: _, positions, sequences } => [positions, sequences].into_iter().for_each(f),
            Self::Step { ids, numbers } => [ids, numbers].into_iter().for_each(f),
        }
    }
}

/// y\[t\] = scale table[id of t]; the planner sets the scale.
#[derive(Clone, Debug)]
pub struct Embed {
    pub table: Weight,
    pub ids: Ids,
    pub scale: f32,
    pub y: Tensor,
}

parameters! { Embed: scale }
values! { Embed: table, ids, y }

/// The rows of `table` [V, D] for the ids that the token state holds at the step's positions;
/// returns [T, D], f32. In a recording [of documents](Recorder::of_documents) the ids are the step
/// input `ids`.
///
/// If [`Recorder::adapt_rows`] added low-rank factors to the table, rows also get their part: y + s
/// B\[id\] A^T.
pub fn embed(
    rec: &mut Recorder<impl From<Embed> + From<Matmul> + From<Scale> + From<Add>>,
    table: Weight,
    tokens: State,
) -> Tensor {
    let y = look_up(rec, table, tokens);
    rec.added_to_rows(table).into_iter().fold(y, |y, LowRank { a, b, scale: s }| {
        let low = look_up(rec, b, tokens); // [T, r]
        let low = scale(rec, low, s);
        let part = product(rec, a, low, false);
        add(rec, y, part)
    })
}

fn look_up(rec: &mut Recorder<impl From<Embed>>, table: Weight, tokens: State) -> Tensor {
    let ids = if rec.is_of_documents() {
        Ids::Step { ids: rec.input(Input::Ids), numbers: rec.input(Input::Numbers) }
    } else {
        Ids::State { tokens, positions: rec.input(Input::Positions), sequences: rec.input(Input::Sequences) }
    };
    let y = rec.make(Shape::new(Lead::Step, rec.capacity().step, table.cols));
    rec.push(Embed { table, ids, scale: 1.0, y });
    y
}

impl Operation for Embed {
    fn io(&self) -> Io {
        let reads = match self.ids {
            Ids::State { tokens: _, positions, sequences } => vec![positions, sequences],
            Ids::Step { ids, numbers } => vec![ids, numbers],
        };
        Io { reads, writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        let rows = u64::from(self.y.shape.rows_at(counts));
        let row = self.table.ty.row_bytes(self.table.cols as usize).unwrap_or(0) as u64;
        Work { flops: 0, bytes: rows * (row + 4 * u64::from(self.table.cols)), weight_bytes: rows * row }
    }
}

impl Lowering for Embed {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Weight { ty, rows, cols, .. } = self.table;
        let shape = Shape { dim: cols.div_ceil(4), ..self.y.shape };
        // Ids of the step are passed as sequences that have one position each.
        let (tokens, positions, sequences, capacity) = match self.ids {
            Ids::State { tokens, positions, sequences } => (tokens.into(), positions, sequences, 0),
            Ids::Step { ids, numbers } => (Arg::from(ids), numbers, numbers, 1),
        };
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let bind = Bind {
                tokens,
                positions: positions.into(),
                sequences: sequences.into(),
                table: Arg::Weight(self.table, part as u32),
                y: self.y.into(),
            };
            let params = Params {
                k: cols,
                rows: self.y.shape.rows,
                row_base: range.start,
                row_count: range.len() as u32,
                capacity,
                scale: self.scale,
            };
            bind.dispatch(params, Grid::Elements { lead: shape, workgroup: 64, per_thread: 1 })
        };
        parts(cx.caps, ty, rows, cols).into_iter().enumerate().map(one).collect()
    }
}

impl Reference for Embed {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let ids: Vec<u32> = match self.ids {
            Ids::State { tokens, positions, sequences } => {
                let at = host.u32(positions).iter().zip(host.u32(sequences));
                at.map(|(&p, &s)| host.token(tokens, s, p)).collect()
            }
            Ids::Step { ids, numbers } => host.u32(numbers).iter().map(|&t| host.u32(ids)[t as usize]).collect(),
        };
        cpu_ref::embed(&host.matrix(self.table), &ids, &mut y);
        host.put(self.y, y);
    }
}
