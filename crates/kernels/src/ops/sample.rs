//! Choice of the next id of every row of logits.

use super::{Io, Operation, Work, sample_scan};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::sampling::SampleParams;
use crate::tensor::{Counts, Input, Lead, Shape, State, StateKind, Tensor};

kernel! {
    SAMPLE: "sample",
    entry: "sample",
    wgsl: [
        "sample.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl", "shared/order.wgsl", "shared/largest.wgsl", "shared/strips.wgsl",
        "shared/sampling.wgsl", "shared/threefry.wgsl",
    ],
    params: Params { vocab: u32, rows: u32, capacity: u32, strips: u32, per_thread: u32 },
    bindings: Bind { logits: Read, raw: Read, sampling: Read, strips: Read, tokens: StateMut, y: Write },
    cpu: cpu_ref::sample,
    nmse: 1e-12,
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
    /// [Out, strips + 1, 4]: what many workgroups found out for the one that draws.
    pub strips: Tensor,
    pub y: Tensor,
}

/// Draws an id for every row of `logits` [Out, V] f32, penalized, as [`cpu_ref::sample`] does at the row's position.
///
/// Returns [Out, 2]: the id, u32, and the bits of its natural log-probability under `raw` [Out, V] f32, the logits
/// before penalties, filters and temperature ([`cpu_ref::log_prob`]). The id is also written into `tokens` at the next
/// position of the row's sequence, so that the next step can embed it; nothing is written past the state's capacity.
pub fn sample(rec: &mut Recorder, logits: Tensor, raw: Tensor, tokens: State) -> Tensor {
    assert_eq!((logits.shape.lead, logits.shape), (Lead::Out, raw.shape), "sample: logits of the rows that are asked for");
    let (sampling, out_rows) = (rec.input(Input::Sampling), rec.input(Input::OutRows));
    let (positions, sequences) = (rec.input(Input::Positions), rec.input(Input::Sequences));
    let strips = rec.make(Shape { heads: sample_scan::strips(logits.shape.width()).1 + 1, dim: 4, ..logits.shape });
    let y = rec.make(Shape { heads: 1, dim: 2, ..logits.shape });
    rec.push(Sample { logits, raw, tokens, sampling, out_rows, positions, sequences, strips, y });
    y
}

impl Operation for Sample {
    fn io(&self) -> Io {
        let reads = vec![self.logits, self.raw, self.sampling, self.out_rows, self.positions, self.sequences];
        Io { reads, writes: vec![self.strips, self.y] }
    }

    /// The penalized logits and the raw ones, once; the strips are there only because many workgroups share the work.
    fn work(&self, counts: Counts) -> Work {
        let bytes = |t: &Tensor| 4 * u64::from(t.shape.rows_at(counts)) * u64::from(t.shape.width());
        let logits = if self.logits.id == self.raw.id { bytes(&self.raw) } else { bytes(&self.logits) + bytes(&self.raw) };
        Work { bytes: logits + bytes(&self.y), ..Work::default() }
    }

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
            draw.dispatch(Params { vocab, rows, capacity: 0, strips, per_thread }, Grid::PerRow { lead: shape, per_row: 1 }),
        ]
    }

    fn cpu(&self, host: &mut Host<'_>) {
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

/// The noise that the draw adds to an id's logit, in f64.
fn noise(spec: &cpu_ref::SampleSpec, position: u32, id: u32) -> f64 {
    let key = [spec.seed[0] ^ spec.sequence.wrapping_mul(0x9e37_79b9), spec.seed[1]];
    let u = (f64::from(cpu_ref::threefry2x32(key, [position, id])[0] >> 8) + 0.5) / f64::from(1 << 24);
    -(-u.ln()).ln()
}

/// Whether f32 decides as f64 does: no filter and no score is within rounding of another outcome.
fn decided(logits: &[f32], spec: &cpu_ref::SampleSpec, position: u32) -> bool {
    if spec.temperature <= 0.0 {
        return true;
    }
    let kept = |by: f32| {
        let top_p = if spec.top_p < 1.0 { spec.top_p * by } else { spec.top_p };
        let min_p = if spec.min_p < 1.0 { spec.min_p * by } else { spec.min_p };
        let threshold = cpu_ref::sample_threshold(logits, &cpu_ref::SampleSpec { top_p, min_p, ..*spec });
        (0..).zip(logits).filter(move |(_, logit)| f64::from(**logit) >= threshold)
    };
    let top = f64::from(logits[cpu_ref::argmax(logits) as usize]);
    let score = |(id, &logit)| (f64::from(logit) - top) / f64::from(spec.temperature) + noise(spec, position, id);
    let mut scores: Vec<f64> = kept(1.0).map(score).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    let apart = scores.len() < 2 || scores[0] - scores[1] >= 2e-5 * scores[0].abs().max(1.0);
    apart && kept(1.0 - 1e-5).count() == scores.len() && kept(1.0 + 1e-5).count() == scores.len()
}

/// Moves the largest of the logits that the filters drop to the id with the most noise, and the smallest that they keep
/// to the next: at a high temperature a threshold that is off by one draws another id.
fn to_the_edge(logits: &mut [f32], spec: &cpu_ref::SampleSpec, position: u32) {
    let mut ids: Vec<usize> = (0..logits.len()).collect();
    let threshold = cpu_ref::sample_threshold(logits, spec);
    ids.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let kept = ids.iter().filter(|&&id| f64::from(logits[id]) >= threshold).count();
    let ranked: Vec<f32> = ids.iter().map(|&id| logits[id]).collect();
    ids.sort_by(|&a, &b| noise(spec, position, b as u32).total_cmp(&noise(spec, position, a as u32)));
    let edge = ranked.get(kept).into_iter().chain(&ranked[kept - 1..kept]);
    let others = ranked[..kept - 1].iter().chain(ranked.iter().skip(kept + 1));
    ids.iter().zip(edge.chain(others)).for_each(|(&id, &logit)| logits[id] = logit);
}

/// The kind of logits of which half are the largest.
const CROWDED: u32 = 4;

/// Logits of every character, with ties that overflow the list of candidates, and masked ones.
fn logits_of(g: &mut Gen, vocab: u32, kind: u32) -> Vec<f32> {
    let value = |g: &mut Gen| match kind {
        1 => 8.0 * g.unit(),
        2 => (3.0 * g.unit()).round(),
        CROWDED => if g.coin() { 2.0 } else { g.unit() },
        _ if g.coin() => f32::NEG_INFINITY,
        _ => 5.0 * g.unit(),
    };
    let mut logits = if kind == 0 { g.values(vocab as usize) } else { (0..vocab).map(|_| value(g)).collect() };
    let sure = g.bits() as usize % logits.len();
    logits[sure] = logits[sure].max(0.0);
    logits
}

/// A temperature that leaves the choice to the noise.
const FLAT: f32 = 1e6;

/// Vocabularies of more strips than threads, the last thread's strips missing, and of more than threads read in a turn.
const WHOLE: [u32; 2] = [200_001, 300_001];

fn params_of(g: &mut Gen, kind: u32) -> SampleParams {
    // Among crowds it shows whether the few that were asked for are taken to be all that are kept, if nothing else filters.
    let crowded = kind == CROWDED;
    SampleParams {
        top_k: if crowded { g.pick(&[1, 2, 256]) } else { g.pick(&[0, 0, 1, 1, 2, 2, 40, 256, 257, 1500, u32::MAX]) },
        top_p: if crowded { g.pick(&[1.0, 1.0, 0.95, 0.0]) } else { g.pick(&[1.0, 1.0, 0.95, 0.5, 0.01, 0.0]) },
        min_p: if crowded { g.pick(&[0.0, 0.0, 0.05, 1.0]) } else { g.pick(&[0.0, 0.0, 0.05, 0.7, 1.0]) },
        temperature: if crowded { g.pick(&[1.0, FLAT, FLAT, FLAT]) } else { g.pick(&[1.0, 0.1, 0.0, FLAT, FLAT, FLAT]) },
        seed: [g.bits() as u32, g.bits() as u32],
        sequence: g.bits() as u32 % 5,
        ..SampleParams::default()
    }
}

/// Every filter off and on, alone and together, at vocabularies around the sizes of slices and of the list; of whole ones the largest.
pub fn case(g: &mut Gen) -> Case {
    let [middling, large] = WHOLE;
    let vocab = g.pick(&[1, 200, 255, 512, 513, 800, 1024, 1025, 2500, 5003, 9001, middling, large]);
    let (rows, capacity) = (if WHOLE.contains(&vocab) { 1 } else { g.small() }, 40);
    let mut case = Case::with_states(rows, &[StateKind::Tokens], 2, capacity);
    case.place(g, capacity);
    case.input.out_rows.reverse();
    let (mut logits, mut raw) = (vec![], vec![]);
    for o in 0..rows as usize {
        let position = case.input.positions[case.input.out_rows[o] as usize];
        let kind = g.pick(&[0, 1, 2, 3, CROWDED]);
        let (row, params) = loop {
            let (mut row, params) = (logits_of(g, vocab, kind), if WHOLE.contains(&vocab) { SampleParams::default() } else { params_of(g, kind) });
            if params.temperature == FLAT {
                to_the_edge(&mut row, &params.spec(), position);
            }
            if g.coin() {
                // The largest last, where strips end early.
                let largest = cpu_ref::argmax(&row) as usize;
                row.swap(largest, vocab as usize - 1);
            }
            if decided(&row, &params.spec(), position) {
                break (row, params);
            }
        };
        raw.extend(row.iter().map(|v| v.max(-100.0) + g.unit()));
        logits.extend(row);
        case.input.sampling.push(params);
    }
    let shape = Shape::new(Lead::Out, rows, vocab);
    let (logits, raw) = (case.given(shape, logits), case.given(shape, raw));
    let tokens = case.rec.state(0);
    let y = sample(&mut case.rec, logits, raw, tokens);
    case.expect_as(y, Compare::Drawn);
    case
}
