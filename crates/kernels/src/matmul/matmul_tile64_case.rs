//! Parity cases of `matmul_tile64`.

use super::matmul::matmul;
use super::matmul_tile64::TILE;
use super::matmul_tile128::DEPTH;
use crate::caps::table::USUAL_WORKGROUPS;
use crate::caps::table::measured::TILE64_LONG_COLUMNS;
use crate::elementwise::add::add_bias;
use crate::graph::tensor::{Lead, Shape, Tensor};
use crate::kernel::random::Gen;
use crate::norm::rms_norm::rms_norm;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};
use gguf::GgmlType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_tile64", case)];

/// Tiles of rows of weights from which on workgroups of one tile of rows are not narrow, but long.
pub(crate) const LONG: u32 = USUAL_WORKGROUPS / 2 + 1;

/// A number of columns in whole units.
pub(crate) fn columns(g: &mut Gen, ty: GgmlType) -> u32 {
    g.cols(ty).next_multiple_of(DEPTH)
}

/// Activations far outside the range of f16, ordinary, or all equal, which adds up the rounding
/// errors of a block's scale and minimum. Equal activations are not used with a single row of
/// weights, because its sum may be almost zero compared with the rounding to f16.
pub(crate) fn activations(case: &mut Case, g: &mut Gen, cols: u32, fewest: u32) -> Tensor {
    let rows = case.input.positions.len() as u32;
    match g.pick(&[0, 1, 2]) {
        kind if kind == 0 || fewest == 1 => case.uniform(g, cols, 1e6),
        1 => case.tensor(g, cols),
        _ => case.given(Shape::new(Lead::Step, rows, cols), vec![g.units(1, 1.0)[0]; (rows * cols) as usize]),
    }
}

/// Every format with units or of 16 bits, rows around the edges of bands and of tiles, columns such
/// that a subgroup has none, some, or several rounds; activations far outside the range of f16, all
/// equal, or normed; the planner makes it from a plain product.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) =
        (g.pick(&[9, 16, 17, 32, 33, 48, 64, 65, 80, 81, 96, 129]), g.format_with(|f| f.tiles().is_some()));
    let few = [1, 15, 16, 17, 31, 33, 97];
    // Equal shares of all forms: few columns, many columns by few rows, by more, and by many.
    let (n, cols) = match g.pick(&[0, 1, 2, 3]) {
        0 => (
            g.pick(&few),
            (columns(g, ty) + g.pick(&[0, TILE64_LONG_COLUMNS / 2]))
                .min(TILE64_LONG_COLUMNS - DEPTH.max(ty.block_size() as u32)),
        ),
        1 => (g.pick(&few), columns(g, ty) + TILE64_LONG_COLUMNS),
        2 => (TILE * LONG - 1, TILE64_LONG_COLUMNS),
        _ => (TILE * USUAL_WORKGROUPS + 1, TILE64_LONG_COLUMNS),
    };
    let mut case = Case::perhaps_full(g, rows);
    case.options = case.options.precision(Precision::Fast);
    case.halves = true;
    let w = case.weight(g, ty, n, cols);
    let x = activations(&mut case, g, cols, n);
    let x = if g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul(&mut case.rec, w, x);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
