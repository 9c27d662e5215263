//! Parity cases of `matmul_tile128`.

use super::matmul::matmul;
use super::matmul_tile128::DEPTH;
use crate::elementwise::add::add_bias;
use crate::kernel::random::Gen;
use crate::plan::Precision;
use crate::testing::Switches;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_tile128", case)];

/// Every format, tile edges in all three dimensions, activations far outside the range of f16,
/// weights in pieces; the planner makes it from a plain product of more rows than go in 8 bits. A
/// single row of weights never has activations that are all equal, because its sum may be almost
/// zero.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.pick(&[33, 64, 127, 128, 129, 300]), g.format());
    let (cols, n) = (g.cols(ty).next_multiple_of(DEPTH), g.pick(&[1, 15, 16, 64, 127, 128, 129, 254, 256, 300]));
    let mut case = Case::new(rows);
    // Small tiles take so few results where more may be rounded.
    case.options = case.options.precision(Precision::Fast).halves();
    // Then some cases have so many tiles that wide ones take less time.
    case.workgroups = g.pick(&[None, Some(1)]);
    let w = case.weight(g, ty, n, cols);
    let x = if g.coin() || n == 1 { case.uniform(g, cols, 1e6) } else { case.tensor(g, cols) };
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul(&mut case.rec, w, x);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
