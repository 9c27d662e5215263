//! Penalties on ids that the text already holds.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::sampling::SampleParams;
use crate::tensor::{Input, Lead, Shape, State, StateKind, Tensor};

kernel! {
    PENALIZE: "penalize",
    entry: "penalize",
    wgsl: ["penalize.wgsl", "shared/grid.wgsl", "shared/sampling.wgsl"],
    params: Params { vocab: u32, rows: u32, capacity: u32 },
    bindings: Bind { logits: Read, sampling: Read, out_rows: Read, positions: Read, sequences: Read, tokens: Read, y: Write },
    cpu: cpu_ref::penalize,
    nmse: 1e-12,
}

/// Ids per workgroup: `BLOCK` in the shader.
const BLOCK: u32 = 2048;

/// y = logits, less what the sampling parameters take from ids of the row's history.
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

/// `logits` [Out, V] f32 with the penalties of the step's sampling parameters; returns [Out, V], f32.
///
/// The history of a row is what `tokens` holds at the last `last_n` positions of its sequence, its own included.
pub fn penalize(rec: &mut Recorder, logits: Tensor, tokens: State) -> Tensor {
    assert_eq!(logits.shape.lead, Lead::Out, "penalize: logits of the rows that are asked for");
    let (sampling, out_rows) = (rec.input(Input::Sampling), rec.input(Input::OutRows));
    let (positions, sequences) = (rec.input(Input::Positions), rec.input(Input::Sequences));
    let y = rec.make(logits.shape);
    rec.push(Penalize { logits, tokens, sampling, out_rows, positions, sequences, y });
    y
}

impl Operation for Penalize {
    fn io(&self) -> Io {
        Io { reads: vec![self.logits, self.sampling, self.out_rows, self.positions, self.sequences], writes: vec![self.y] }
    }

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

    fn cpu(&self, host: &mut Host<'_>) {
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

/// Vocabularies at the edges of blocks, no history, one longer than the window, repeated ids, each penalty alone and all.
pub fn case(g: &mut Gen) -> Case {
    let (rows, vocab, capacity) = (g.small(), g.pick(&[1, 7, 2047, 2048, 2049, 5003]), g.pick(&[1, 64, 700]));
    let mut case = Case::with_states(rows, &[StateKind::Tokens], 3, capacity);
    case.place(g, capacity);
    // Few ids, so that they repeat, up to the last of the vocabulary.
    case.tokens(g, vocab.min(50));
    case.tokens(g, vocab);
    case.input.out_rows.reverse();
    case.input.sampling = (0..rows)
        .map(|_| SampleParams {
            repetition: g.pick(&[1.0, 1.3, 0.8]),
            frequency: g.pick(&[0.0, 0.2, -0.1]),
            presence: g.pick(&[0.0, 0.7]),
            last_n: g.pick(&[0, 1, 64, 300, u32::MAX]),
            ..SampleParams::default()
        })
        .collect();
    let values = g.values((rows * vocab) as usize);
    let logits = case.given(Shape::new(Lead::Out, rows, vocab), values);
    let tokens = case.rec.state(0);
    let y = penalize(&mut case.rec, logits, tokens);
    case.expect(y);
    case
}
