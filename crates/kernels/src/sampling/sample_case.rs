//! Parity cases of `sample`.

use super::sample::sample;
use super::sample_scan::first_of_strip;
use crate::graph::sampling::SampleParams;
use crate::graph::tensor::{Lead, Shape, StateKind};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("sample", case)];

/// The noise that the draw adds to the logit of an id, in f64.
pub(crate) fn noise(spec: &cpu_ref::SampleSpec, position: u32, id: u32) -> f64 {
    let key = [spec.seed[0] ^ spec.sequence.wrapping_mul(0x9e37_79b9), spec.seed[1]];
    let u = (f64::from(cpu_ref::threefry2x32(key, [position, id])[0] >> 8) + 0.5) / f64::from(1 << 24);
    -(-u.ln()).ln()
}

/// Whether f32 and f64 decide alike: no filter and no score is within rounding of another result.
pub(crate) fn decided(logits: &[f32], spec: &cpu_ref::SampleSpec, position: u32) -> bool {
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

/// Gives the largest logit that the filters drop to the id with the most noise, and the smallest
/// logit that they keep to the next id. At a high temperature, a threshold that is off by one then
/// draws another id.
pub(crate) fn to_the_edge(logits: &mut [f32], spec: &cpu_ref::SampleSpec, position: u32) {
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

/// Brings an id next to the drawn id, just below or just above. Of the ids that the filters keep,
/// it is the id with the least noise, or the id with the most noise in a whole vocabulary. A small
/// error of the noise then draws the other one of these two ids.
fn to_the_brink(logits: &mut [f32], spec: &cpu_ref::SampleSpec, position: u32, above: bool) {
    let sign = if WHOLE.contains(&(logits.len() as u32)) { 1.0 } else { -1.0 };
    let threshold = cpu_ref::sample_threshold(logits, spec);
    let kept: Vec<usize> = (0..logits.len()).filter(|&id| f64::from(logits[id]) >= threshold).collect();
    let noise = |id: usize| noise(spec, position, id as u32);
    let score = |id: usize| f64::from(logits[id]) / f64::from(spec.temperature) + noise(id);
    let most = |of: &dyn Fn(usize) -> f64| {
        kept.iter().copied().max_by(|&a, &b| of(a).total_cmp(&of(b))).expect("the largest is kept")
    };
    let (drawn, other) = (most(&score), most(&|id| sign * noise(id)));
    let apart = if above { 5e-5 } else { -5e-5 } * score(drawn).abs().max(1.0);
    if other != drawn {
        logits[other] = ((score(drawn) + apart - noise(other)) * f64::from(spec.temperature)) as f32;
    }
}

/// The kind of logits where half of the ids have the largest logit.
pub(crate) const CROWDED: u32 = 4;

/// Logits of every kind, with ties that overflow the list of candidates, and masked logits.
pub(crate) fn logits_of(g: &mut Gen, vocab: u32, kind: u32) -> Vec<f32> {
    let value = |g: &mut Gen| match kind {
        1 => 8.0 * g.unit(),
        2 => (3.0 * g.unit()).round(),
        CROWDED => {
            if g.any_of(&[false, true]) {
                2.0
            } else {
                g.unit()
            }
        }
        _ if g.any_of(&[false, true]) => f32::NEG_INFINITY,
        _ => 5.0 * g.unit(),
    };
    g.block();
    let mut logits = if kind == 0 { g.values(vocab as usize) } else { (0..vocab).map(|_| value(g)).collect() };
    let sure = g.id(vocab) as usize;
    logits[sure] = logits[sure].max(0.0);
    logits
}

/// A temperature at which the noise decides.
pub(crate) const FLAT: f32 = 1e6;

/// Vocabularies with more strips than threads, without the last thread's strips, and with more
/// strips than the threads read in one round.
pub(crate) const WHOLE: [u32; 2] = [200_001, 300_001];

pub(crate) fn params_of(g: &mut Gen, kind: u32) -> SampleParams {
    // With many equal logits and no other filter, this shows whether the requested few ids are
    // treated as all ids that are kept.
    let crowded = kind == CROWDED;
    SampleParams {
        top_k: if crowded { g.pick(&[1, 2, 256]) } else { g.pick(&[0, 0, 1, 1, 2, 2, 40, 256, 257, 1500, u32::MAX]) },
        top_p: if crowded { g.pick(&[1.0, 1.0, 0.95, 0.0]) } else { g.pick(&[1.0, 1.0, 0.95, 0.5, 0.01, 0.0]) },
        min_p: if crowded { g.pick(&[0.0, 0.0, 0.05, 1.0]) } else { g.pick(&[0.0, 0.0, 0.05, 0.7, 1.0]) },
        temperature: if crowded {
            g.pick(&[1.0, FLAT, FLAT, FLAT])
        } else {
            g.pick(&[1.0, 0.1, 0.0, FLAT, FLAT, FLAT])
        },
        seed: [g.bits() as u32, g.bits() as u32],
        sequence: g.bits() as u32 % 5,
        ..SampleParams::default()
    }
}

/// Every filter off and on, alone and together, at vocabularies around the sizes of slices and of
/// the list, and of whole vocabularies the largest.
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
            let whole = || SampleParams { temperature: if kind == 1 { 1.0 } else { 0.0 }, ..SampleParams::default() };
            let (mut row, params) =
                (logits_of(g, vocab, kind), if WHOLE.contains(&vocab) { whole() } else { params_of(g, kind) });
            if params.temperature == FLAT {
                to_the_edge(&mut row, &params.spec(), position);
            } else if kind == 1 && params.temperature > 0.0 {
                to_the_brink(&mut row, &params.spec(), position, o % 2 == usize::from(vocab == large));
            }
            // The largest logit is anywhere; last, where strips end early; or first of a strip: a
            // list that is one element too long has it twice.
            let last = vocab - 1;
            let to = g.pick(&[None, Some(last), Some(first_of_strip(vocab, last))]);
            if let Some(to) = to {
                let largest = cpu_ref::argmax(&row) as usize;
                row.swap(largest, to as usize);
            }
            if decided(&row, &params.spec(), position) {
                break (row, params);
            }
        };
        g.block();
        raw.extend(row.iter().map(|v| v.max(-100.0) + g.unit()));
        logits.extend(row);
        case.input.sampling.push(params);
    }
    let shape = Shape::new(Lead::Out, rows, vocab);
    let (logits, raw) = (case.given(shape, logits), case.given(shape, raw));
    let tokens = case.rec.state(0);
    let y = sample(&mut case.rec, logits, raw, tokens);
    case.expect(y);
    case
}
