//! Draws the next id for every row of logits.

use super::sample_scan;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::record::Recorder;
use crate::graph::sampling::SampleParams;
use crate::graph::tensor::{Counts, Element, Input, Lead, Shape, State, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    SAMPLE: "sample",
    wgsl: [
        "sampling/sample.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl", "shared/order.wgsl", "sampling/pieces/largest.wgsl",
        "sampling/pieces/strips.wgsl", "sampling/pieces/sampling.wgsl", "shared/threefry.wgsl"
    ],
    params: Params { vocab: u32, rows: u32, capacity: u32, strips: u32, per_thread: u32 },
    bindings: Bind { logits: Read, raw: Read, sampling: Read, strips: Read, tokens: State, y: Write },
    cpu: cpu_ref::sample,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 15452 },
}

/// y = (id, log-probability), tokens at the next position = id.
#[derive(Clone, Debug)]
pub struct Sample {
    pub logits: Tensor,
    pub raw: Tensor,
    pub tokens: State,
    pub sampling: Tensor,
    pub out_rows: Tensor,
    pub positions: Tensor,
    pub sequences: Tensor,
    /// [Out, strips + 1, 4]: what many workgroups find about a row, for the workgroup that draws.
    pub strips: Tensor,
    pub y: Tensor,
}

parameters! { Sample }
values! { Sample: logits, raw, sampling, out_rows, positions, sequences, strips, y }

/// Draws an id for every row of `logits` [Out, V] f32, which are penalized already. It draws as
/// [`cpu_ref::sample`] does at the row's position.
///
/// Returns [Out, 2] words: the id, and the bits of its natural log-probability under `raw` [Out, V]
/// f32, the logits before penalties, filters and temperature ([`cpu_ref::log_prob`]). The id is
/// also written into `tokens` at the next position of the row's sequence, so that the next step can
/// embed it. Nothing is written past the state's capacity.
pub fn sample(rec: &mut Recorder<impl From<Sample>>, logits: Tensor, raw: Tensor, tokens: State) -> Tensor {
    assert_eq!(
        (logits.shape.lead, logits.shape),
        (Lead::Out, raw.shape),
        "sample: logits of the rows that are asked for"
    );
    let (sampling, out_rows) = (rec.input(Input::Sampling), rec.input(Input::OutRows));
    let (positions, sequences) = (rec.input(Input::Positions), rec.input(Input::Sequences));
    let strips = rec.make_of(
        Element::U32,
        Shape { heads: sample_scan::strips(logits.shape.width()).1 + 1, dim: 4, ..logits.shape },
    );
    let y = rec.make_of(Element::U32, Shape { heads: 1, dim: 2, ..logits.shape });
    rec.push(Sample { logits, raw, tokens, sampling, out_rows, positions, sequences, strips, y });
    y
}

impl Operation for Sample {
    fn io(&self) -> Io {
        let reads = vec![self.logits, self.raw, self.sampling, self.out_rows, self.positions, self.sequences];
        Io { reads, writes: vec![self.strips, self.y] }
    }

    /// Counts the penalized logits and the raw logits once. The strips do not count, because they
    /// exist only to share the work among workgroups.
    fn work(&self, counts: Counts) -> Work {
        let bytes = |t: &Tensor| 4 * u64::from(t.shape.rows_at(counts)) * u64::from(t.shape.width());
        let logits =
            if self.logits.id == self.raw.id { bytes(&self.raw) } else { bytes(&self.logits) + bytes(&self.raw) };
        Work { bytes: logits + bytes(&self.y), ..Work::default() }
    }
}

impl Lowering for Sample {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.logits.shape;
        let (vocab, rows, (per_thread, strips)) = (shape.width(), shape.rows, sample_scan::strips(shape.width()));
        let draw = Bind {
            logits: self.logits.into(),
            raw: self.raw.into(),
            sampling: self.sampling.into(),
            strips: self.strips.into(),
            tokens: self.tokens.into(),
            y: self.y.into(),
        };
        vec![
            sample_scan::dispatch(self),
            draw.dispatch(
                Params { vocab, rows, capacity: 0, strips, per_thread },
                Grid::PerRow { lead: shape, per_row: 1 },
            ),
        ]
    }
}

impl Reference for Sample {
    fn reference(&self, host: &mut Host<'_>) {
        let vocab = self.logits.shape.width() as usize;
        let rows = host.f32(self.logits).chunks_exact(vocab).zip(host.f32(self.raw).chunks_exact(vocab));
        let params: &[SampleParams] = bytemuck::cast_slice(host.u32(self.sampling));
        let (mut y, mut said) = (vec![], vec![]);
        for ((params, &t), (logits, raw)) in params.iter().zip(host.u32(self.out_rows)).zip(rows) {
            let (position, sequence) = (host.u32(self.positions)[t as usize], host.u32(self.sequences)[t as usize]);
            let id = cpu_ref::sample(logits, &params.spec(), position);
            y.extend([id, cpu_ref::log_prob(raw, id).to_bits()]);
            if position + 1 < host.capacity(self.tokens) {
                said.push((host.slot(self.tokens, sequence, position + 1), id));
            }
        }
        let tokens = host.state_mut(self.tokens);
        for (slot, id) in said {
            tokens[4 * slot..4 * slot + 4].copy_from_slice(&id.to_le_bytes());
        }
        host.put_u32(self.y, y);
    }
}
