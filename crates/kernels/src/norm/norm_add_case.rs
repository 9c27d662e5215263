//! Parity cases of `norm_add`.

use super::pack_q8::pack_q8;
use super::rms_norm::rms_norm;
use crate::elementwise::add::add;
use crate::elementwise::mul::mul_row;
use crate::elementwise::scale::scale;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_add", case)];

/// A sum with a norm of rows of `heads` heads, with and without a weight and a factor; rows so
/// small that eps counts, and rows whose last elements dominate.
pub(crate) fn sum(case: &mut Case, g: &mut Gen, dim: u32, heads: u32) -> Tensor {
    let b = summand(case, g, dim).heads(heads);
    let w = g.coin().then(|| case.vector(g, dim / heads));
    residual(case, g, b, w)
}

fn summand(case: &mut Case, g: &mut Gen, dim: u32) -> Tensor {
    match g.pick(&[0, 1, 2, 2]) {
        0 => case.squared(g, dim),
        1 => case.uniform(g, dim, 1e-3),
        _ => case.rising(g, dim),
    }
}

/// The sum of such a norm of `b` and a row, times a factor or not.
fn residual(case: &mut Case, g: &mut Gen, b: Tensor, w: Option<Weight>) -> Tensor {
    let a = case.tensor(g, b.shape.width());
    let b = rms_norm(&mut case.rec, b, w, g.pick(&[1e-6_f32, 1e-5])).flat();
    let h = if g.coin() { add(&mut case.rec, a, b) } else { add(&mut case.rec, b, a) };
    let factor = g.coin().then(|| case.vector(g, 1));
    factor.map_or(h, |s| mul_row(&mut case.rec, h, s))
}

/// A sum with the norm of the sum of two norms, as a layer of experts beside a dense one has it.
fn pair(case: &mut Case, g: &mut Gen, dim: u32) -> Tensor {
    let [c, d] = [(); 2].map(|()| {
        let (x, w) = (summand(case, g, dim), case.vector(g, dim));
        rms_norm(&mut case.rec, x, Some(w), g.pick(&[1e-6_f32, 1e-5]))
    });
    let b = add(&mut case.rec, c, d);
    let w = g.coin().then(|| case.vector(g, dim));
    residual(case, g, b, w)
}

/// The parts as a model records them: one norm or two, with and without factors; read as f32 (also
/// of heads), in 8 bits, and normed in 8 bits.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 32 * g.pick(&[1, 3, 33, 65, 97, 128, 129]));
    let mut case = Case::new(rows);
    let kind = g.pick(&[0, 1, 2]);
    let heads = if kind == 0 { g.pick(&[1, 2, 8]) } else { 1 };
    let h = if heads == 1 && g.coin() { pair(&mut case, g, dim) } else { sum(&mut case, g, dim, heads) };
    let h = if g.coin() { scale(&mut case.rec, h, g.pick(&[-0.37, 2.0])) } else { h };
    case.expect(h);
    if kind == 0 {
        return case;
    }
    let u = g.coin().then(|| case.vector(g, dim));
    let x = if kind == 2 { rms_norm(&mut case.rec, h, u, 1e-6) } else { h };
    let packed = pack_q8(&mut case.rec, x);
    case.expect(packed);
    case
}
