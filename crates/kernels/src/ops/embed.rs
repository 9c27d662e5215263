//! Looks token ids up in an embedding table of any weight format.

use super::{Io, Op, Operation, Work};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, Uses, parts};
use crate::record::{Node, Recorder};
use crate::tensor::{Counts, Input, Shape, State, Tensor, Weight};

kernel! {
    EMBED: "embed",
    entry: "embed",
    wgsl: ["embed.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, rows: u32, row_base: u32, row_count: u32, capacity: u32, scale: f32 },
    bindings: Bind { tokens: Read, positions: Read, sequences: Read, table: Weight, y: Write },
    cpu: cpu_ref::embed,
    nmse: 1e-12,
}

/// y\[t\] = scale table[tokens[sequence of t, position of t]]; the scale is put there by the planner.
#[derive(Clone, Debug)]
pub struct Embed {
    pub table: Weight,
    pub tokens: State,
    pub positions: Tensor,
    pub sequences: Tensor,
    pub scale: f32,
    pub y: Tensor,
}

/// The rows of `table` [V, D] for the ids that the token state holds at the step's positions; [T, D], f32.
pub fn embed(rec: &mut Recorder, table: Weight, tokens: State) -> Tensor {
    let (positions, sequences) = (rec.input(Input::Positions), rec.input(Input::Sequences));
    let y = rec.make(Shape { dim: table.cols, ..positions.shape });
    rec.push(Embed { table, tokens, positions, sequences, scale: 1.0, y });
    y
}

/// An embedding that is read by a scale alone.
pub(crate) fn pattern(nodes: &[Node], uses: &Uses, _: &Caps) -> Option<(usize, Op)> {
    let [Node { op: Op::Embed(embed), .. }, Node { op: Op::Scale(scale), .. }, ..] = nodes else { return None };
    let alone = scale.x.id == embed.y.id && uses.once(embed.y);
    alone.then(|| (2, Embed { scale: scale.s, y: scale.y, ..embed.clone() }.into()))
}

impl Operation for Embed {
    fn io(&self) -> Io {
        Io { reads: vec![self.positions, self.sequences], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        let rows = u64::from(self.y.shape.rows_at(counts));
        let row = self.table.ty.row_bytes(self.table.cols as usize).unwrap_or(0) as u64;
        Work { flops: 0, bytes: rows * (row + 4 * u64::from(self.table.cols)), weight_bytes: rows * row }
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Weight { ty, rows, cols, .. } = self.table;
        let shape = Shape { dim: cols.div_ceil(4), ..self.y.shape };
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let bind = Bind {
                tokens: self.tokens.into(),
                positions: self.positions.into(),
                sequences: self.sequences.into(),
                table: Arg::Weight(self.table, part as u32),
                y: self.y.into(),
            };
            let params = Params {
                k: cols,
                rows: self.y.shape.rows,
                row_base: range.start,
                row_count: range.len() as u32,
                capacity: 0,
                scale: self.scale,
            };
            bind.dispatch(params, Grid::Elements { lead: shape, workgroup: 64, per_thread: 1 })
        };
        parts(cx.caps, ty, rows, cols).into_iter().enumerate().map(one).collect()
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let at = host.u32(self.positions).iter().zip(host.u32(self.sequences));
        let ids: Vec<u32> = at.map(|(&p, &s)| host.token(self.tokens, s, p)).collect();
        cpu_ref::embed(&host.matrix(self.table), &ids, &mut y);
        host.put(self.y, y);
    }
}

/// Tables of every format, scaled or not, several sequences, positions that wrap a ring.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.small(), g.format());
    let (cols, vocab) = (g.cols(ty), 7);
    let mut case = Case::with_states(rows, &[crate::tensor::StateKind::Tokens], 2, 8);
    let table = case.weight(g, ty, vocab, cols);
    case.place(g, 13);
    case.tokens(g, vocab);
    let tokens = case.rec.state(0);
    let y = embed(&mut case.rec, table, tokens);
    let y = if g.coin() { super::scale(&mut case.rec, y, 39.191_836) } else { y };
    case.expect(y);
    case
}
