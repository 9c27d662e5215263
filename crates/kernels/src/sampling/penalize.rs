//! Penalties on ids that the text already contains.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::sampling::SampleParams;
use crate::graph::tensor::{Input, Lead, State, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    PENALIZE: "penalize",
    wgsl: ["sampling/penalize.wgsl", "shared/grid.wgsl", "sampling/pieces/sampling.wgsl"],
    params: Params { vocab: u32, rows: u32, capacity: u32 },
    bindings: Bind { logits: Read, sampling: Read, out_rows: Read, positions: Read, sequences: Read, tokens: Read, y: Write },
    cpu: cpu_ref::penalize,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 8192 },
}

/// Ids per workgroup: `BLOCK` in the shader.
const BLOCK: u32 = 2048;

/// y = logits minus the penalties on the ids of the row's history.
#[derive(Clone, Debug)]
pub struct Penalize {
    pub logits: Tensor,
    pub tokens: State,
    pub sampling: Tensor,
    pub out_rows: Tensor,
    pub positions: Tensor,
    pub sequences: Tensor,
    pub y: Tensor,
}

parameters! { Penalize }
values! { Penalize: logits, sampling, out_rows, positions, sequences, y }

/// `logits` [Out, V] f32 with the penalties of the step's sampling parameters; returns [Out, V],
/// f32.
///
/// The history of a row is the ids in `tokens` at the last `last_n` positions of its sequence,
/// including the row's own position.
pub fn penalize(rec: &mut Recorder<impl From<Penalize>>, logits: Tensor, tokens: State) -> Tensor {
    assert_eq!(logits.shape.lead, Lead::Out, "penalize: logits of the rows that are asked for");
    let (sampling, out_rows) = (rec.input(Input::Sampling), rec.input(Input::OutRows));
    let (positions, sequences) = (rec.input(Input::Positions), rec.input(Input::Sequences));
    let y = rec.make(logits.shape);
    rec.push(Penalize { logits, tokens, sampling, out_rows, positions, sequences, y });
    y
}

impl Operation for Penalize {
    fn io(&self) -> Io {
        Io {
            reads: vec![self.logits, self.sampling, self.out_rows, self.positions, self.sequences],
            writes: vec![self.y],
        }
    }
}

impl Lowering for Penalize {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.logits.shape;
        let bind = Bind {
            logits: self.logits.into(),
            sampling: self.sampling.into(),
            out_rows: self.out_rows.into(),
            positions: self.positions.into(),
            sequences: self.sequences.into(),
            tokens: self.tokens.into(),
            y: self.y.into(),
        };
        let params = Params { vocab: shape.width(), rows: shape.rows, capacity: 0 };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: shape.width().div_ceil(BLOCK) })]
    }
}

impl Reference for Penalize {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let vocab = self.logits.shape.width() as usize;
        let rows = host.f32(self.logits).chunks_exact(vocab).zip(y.chunks_exact_mut(vocab));
        let params: &[SampleParams] = bytemuck::cast_slice(host.u32(self.sampling));
        for ((params, &t), (logits, y)) in params.iter().zip(host.u32(self.out_rows)).zip(rows) {
            let (end, sequence) = (host.u32(self.positions)[t as usize] + 1, host.u32(self.sequences)[t as usize]);
            let seen = end.saturating_sub(params.last_n)..end;
            let history: Vec<u32> = seen.map(|p| host.token(self.tokens, sequence, p)).collect();
            cpu_ref::penalize(logits, &history, &params.spec(), y);
        }
        host.put(self.y, y);
    }
}
