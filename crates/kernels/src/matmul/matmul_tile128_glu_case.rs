//! Parity cases of `matmul_tile128_glu`.

use super::matmul::matmul;
use super::matmul_tile128::DEPTH;
use crate::elementwise::geglu::geglu;
use crate::elementwise::swiglu::swiglu;
use crate::graph::tensor::{Lead, Shape, Tensor};
use crate::kernel::random::Gen;
use crate::plan::Precision;
use crate::testing::Switches;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_tile128_glu", case)];

/// Rows far outside the range of f16, with neighbours of different magnitudes.
pub(crate) fn uneven(case: &mut Case, g: &mut Gen, cols: u32) -> Tensor {
    let rows = case.input.positions.len() as u32;
    g.block();
    let values = (0..rows * cols).map(|i| g.unit() * [1e6, 2.5e5, 6.25e4][(i / cols % 3) as usize]).collect();
    case.given(Shape::new(Lead::Step, rows, cols), values)
}

/// The parts as a model records them, with the product that reads them: every format, tile edges,
/// activations far outside the range of f16, and parts of a row with very different magnitudes.
pub fn case(g: &mut Gen) -> Case {
    // The last row of a full plan is one of every eight that a subgroup has.
    let (rows, ty) =
        (g.pick(&[65, 127, 128, 129, 130, 138, 146, 154, 162, 178, 300]), g.format_with(|f| f.units.is_some()));
    let (cols, n) = (g.cols(ty).next_multiple_of(DEPTH), g.pick(&[64, 128, 192, 320]));
    let mut case = Case::new(rows);
    // Small tiles take so few results where more may be rounded.
    case.options = case.options.precision(Precision::Fast).halves();
    let [gate, up] = [(); 2].map(|()| case.weight(g, ty, n, cols));
    let width = g.pick(&[1, 64, 129]);
    let down = case.weight(g, gguf::GgmlType::F16, width, n);
    let x = if g.coin() { uneven(&mut case, g, cols) } else { case.tensor(g, cols) };
    let (gate, up) = (matmul(&mut case.rec, gate, x), matmul(&mut case.rec, up, x));
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let y = matmul(&mut case.rec, down, y);
    case.expect(y);
    case
}
