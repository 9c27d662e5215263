//! Parity cases of the derivatives of attention.

use super::attention::Attend;
use super::attention_backward_kv::attention_backward_kv;
use super::attention_backward_q::attention_backward_q;
use super::attention_delta::attention_delta;
use super::attention_lse::{Attended, attention_lse};
use crate::graph::operation::Parameter;
use crate::graph::tensor::{Input, Lead, Shape, Tensor};
use crate::kernel::random::Gen;
use crate::plan::{PlanOptions, Precision};
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::Mask;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[
    ("attention_lse", case),
    ("attention_lse_flash", flash_case),
    ("attention_backward_q_flash", q_flash_case),
    ("attention_backward_kv_flash", kv_flash_case),
    ("attention_delta", delta_case),
    ("attention_backward_q", q_case),
    ("attention_backward_kv", kv_case),
];

/// What a case draws from.
struct Choices {
    rows: &'static [u32],
    dims: &'static [u32],
    groups: &'static [u32],
    options: fn() -> PlanOptions,
    /// Values of a width, and the derivative by a result.
    v: fn(&mut Case, &mut Gen, u32) -> Tensor,
    dy: fn(&mut Case, &mut Gen, u32) -> Tensor,
    /// The magnitude of results, which are of the size of values.
    y: f32,
}

/// For kernels that take any rows.
const PLAIN: Choices = Choices {
    rows: &[1, 3, 33, 129, 200],
    dims: &[4, 64, 80, 128, 256, 512],
    groups: &[1, 2, 3],
    options: PlanOptions::plain,
    v: |case, g, width| case.tensor(g, width),
    dy: |case, g, width| case.uniform(g, width, 1.0),
    y: 1.0,
};

/// For kernels of tiles of 32 queries: tiles partly filled, because rows or heads do not divide
/// them.
const TILES: Choices = Choices {
    rows: &[16, 17, 33, 64, 130],
    dims: &[64, 128, 256, 512],
    groups: &[1, 2, 3, 5, 32],
    options: || PlanOptions::training().precision(Precision::Fast),
    // Values that f16 does not hold, and derivatives far below. A key that only rows of small
    // derivatives see has fewer bits than the others, so magnitudes differ little.
    v: |case, g, width| uneven(case, g, width, 1e5, [1.0, 0.25, 1.0, 0.0]),
    dy: |case, g, width| uneven(case, g, width, 1e-9, [1.0, 0.0, 1.0 / 64.0, 0.125]),
    y: 1e5,
};

/// Rows that are multiplied by these factors in turn. The first row alone is the largest.
fn uneven(case: &mut Case, g: &mut Gen, width: u32, amplitude: f32, by: [f32; 4]) -> Tensor {
    let rows = case.input.positions.len() as u32;
    let mut values = g.units(rows * width, amplitude);
    for (t, row) in values.chunks_exact_mut(width as usize).enumerate() {
        row.iter_mut().for_each(|v| *v *= if t == 0 { 8.0 } else { by[t % 4] });
    }
    case.given(Shape::new(Lead::Step, rows, width), values)
}

/// Several documents in a step, of one row and more, with every mask; windows that end inside a
/// document and beyond its first row; grouped heads of every size.
fn attended(g: &mut Gen, of: &Choices) -> (Case, Attended, u32) {
    let (rows, dim) = (g.pick(of.rows), g.pick(of.dims));
    // Oracles take long for many long heads.
    let (kv_heads, group) = (g.pick(&[1, 2]), g.pick(if dim > 64 { &of.groups[..3] } else { of.groups }));
    let width = kv_heads * dim;
    let mut case = Case::new(rows);
    case.options = (of.options)();
    // First rows of the documents.
    let mut begins = [0, g.pick(&[0, 1, rows / 2, rows - 1]), g.pick(&[0, rows / 3, rows - 1])];
    begins.sort_unstable();
    let first = |t: u32| *begins.iter().rfind(|&&begin| begin <= t).unwrap_or(&0);
    let end = |t: u32| *begins.iter().find(|&&begin| begin > t).unwrap_or(&rows);
    case.input.firsts = (0..rows).map(first).collect();
    let mask = g.pick(&[Mask::Causal, Mask::Bidirectional, Mask::Window(1), Mask::Window(7), Mask::Window(90)]);
    if mask == Mask::Bidirectional {
        // Rows see all of their document, or not beyond themselves, or every third sees all.
        let whole = g.pick(&[1, rows + 1, 3]);
        case.input.ends = (0..rows).map(|t| if (t + 1) % whole == 0 { end(t) } else { t + 1 }).collect();
    }
    let attend = Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: g.coin().then_some(50.0) };
    let (k, v) = (case.uniform(g, width, 3.0).heads(kv_heads), (of.v)(&mut case, g, width).heads(kv_heads));
    let q = case.uniform(g, width * group, 3.0).heads(kv_heads * group);
    let [spans, step_rows] = [Input::Spans, Input::Rows].map(|input| case.rec.input(input));
    (case, Attended { q, k, v, kv_heads, attend, spans, step_rows }, width * group)
}

fn lse_of(g: &mut Gen, of: &Choices) -> Case {
    let (mut case, of, _) = attended(g, of);
    let y = attention_lse(&mut case.rec, of);
    case.expect(y);
    case
}

pub fn case(g: &mut Gen) -> Case {
    lse_of(g, &PLAIN)
}

pub fn flash_case(g: &mut Gen) -> Case {
    lse_of(g, &TILES)
}

/// What the derivatives read, of any result and its derivative.
fn with_stats(g: &mut Gen, choices: &Choices) -> (Case, Attended, [Tensor; 2]) {
    let (mut case, of, width) = attended(g, choices);
    let y = case.uniform(g, width, choices.y).heads(of.q.shape.heads);
    let dy = (choices.dy)(&mut case, g, width).heads(of.q.shape.heads);
    let lse = attention_lse(&mut case.rec, of);
    let stats = attention_delta(&mut case.rec, y, dy, lse);
    (case, of, [dy, stats])
}

pub fn delta_case(g: &mut Gen) -> Case {
    let (mut case, _, [_, stats]) = with_stats(g, &PLAIN);
    case.expect(stats);
    case
}

fn q_of((mut case, of, [dy, stats]): (Case, Attended, [Tensor; 2])) -> Case {
    let dq = attention_backward_q(&mut case.rec, of, dy, stats);
    case.expect(dq);
    case
}

fn kv_of((mut case, of, [dy, stats]): (Case, Attended, [Tensor; 2])) -> Case {
    let results = attention_backward_kv(&mut case.rec, of, dy, stats);
    results.into_iter().for_each(|t| case.expect(t));
    case
}

pub fn q_case(g: &mut Gen) -> Case {
    q_of(with_stats(g, &PLAIN))
}

pub fn q_flash_case(g: &mut Gen) -> Case {
    q_of(with_stats(g, &TILES))
}

pub fn kv_case(g: &mut Gen) -> Case {
    kv_of(with_stats(g, &PLAIN))
}

pub fn kv_flash_case(g: &mut Gen) -> Case {
    kv_of(with_stats(g, &TILES))
}

impl Parameter for Attended {
    fn wrong(&self, name: &'static str) -> Vec<(&'static str, Self)> {
        self.attend.wrong(name).into_iter().map(|(name, attend)| (name, Self { attend, ..*self })).collect()
    }
}
