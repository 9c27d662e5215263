//! Parity cases of the derivatives of attention.

use crate::graph::tensor::{Input, Tensor};
use crate::kernel::random::Gen;
use crate::ops::attention::Attend;
use crate::ops::backward::{Attended, attention_backward_kv, attention_backward_q, attention_delta, attention_lse};
use crate::testing::parity::Case;
use cpu_ref::Mask;

/// Several documents in a step, of one row and more, with every mask; windows that end inside a
/// document and beyond its first row; grouped heads of every size.
fn attended(g: &mut Gen) -> (Case, Attended, u32) {
    let (rows, dim) = (g.pick(&[1, 3, 33, 129, 200]), g.pick(&[4, 64, 80, 128, 256, 512]));
    let (kv_heads, group) = (g.pick(&[1, 2]), g.pick(&[1, 2, 3]));
    let width = kv_heads * dim;
    let mut case = Case::new(rows);
    // First rows of the documents.
    let mut begins = [0, g.pick(&[0, 1, rows / 2, rows - 1]), g.pick(&[0, rows / 3, rows - 1])];
    begins.sort_unstable();
    let first = |t: u32| *begins.iter().rfind(|&&begin| begin <= t).unwrap_or(&0);
    let end = |t: u32| *begins.iter().find(|&&begin| begin > t).unwrap_or(&rows);
    case.input.firsts = (0..rows).map(first).collect();
    let mask = g.pick(&[Mask::Causal, Mask::Bidirectional, Mask::Window(1), Mask::Window(7), Mask::Window(90)]);
    if mask == Mask::Bidirectional {
        // Rows see all of their document, or not beyond themselves.
        let whole = g.coin();
        case.input.ends = (0..rows).map(|t| if whole { end(t) } else { t + 1 }).collect();
    }
    let attend = Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: g.coin().then_some(50.0) };
    let (k, v) = (case.uniform(g, width, 3.0).heads(kv_heads), case.tensor(g, width).heads(kv_heads));
    let q = case.uniform(g, width * group, 3.0).heads(kv_heads * group);
    let spans = case.rec.input(Input::Spans);
    (case, Attended { q, k, v, kv_heads, attend, spans }, width * group)
}

pub fn case(g: &mut Gen) -> Case {
    let (mut case, of, _) = attended(g);
    let y = attention_lse(&mut case.rec, of);
    case.expect(y);
    case
}

/// What the derivatives read, of any result and its derivative.
fn with_stats(g: &mut Gen) -> (Case, Attended, [Tensor; 2]) {
    let (mut case, of, width) = attended(g);
    let [y, dy] = [0, 1].map(|_| case.uniform(g, width, 1.0).heads(of.q.shape.heads));
    let lse = attention_lse(&mut case.rec, of);
    let stats = attention_delta(&mut case.rec, y, dy, lse);
    (case, of, [dy, stats])
}

pub fn delta_case(g: &mut Gen) -> Case {
    let (mut case, _, [_, stats]) = with_stats(g);
    case.expect(stats);
    case
}

pub fn q_case(g: &mut Gen) -> Case {
    let (mut case, of, [dy, stats]) = with_stats(g);
    let dq = attention_backward_q(&mut case.rec, of, dy, stats);
    case.expect(dq);
    case
}

pub fn kv_case(g: &mut Gen) -> Case {
    let (mut case, of, [dy, stats]) = with_stats(g);
    let results = attention_backward_kv(&mut case.rec, of, dy, stats);
    results.into_iter().for_each(|t| case.expect(t));
    case
}
