//! Parity cases of `matmul_tile64_pair`.

use super::matmul::matmul;
use super::matmul_tile64::TILE;
use super::matmul_tile64_case::{LONG, activations, columns};
use super::matmul_tile64_pair::least_workgroups;
use crate::caps::table::USUAL_WORKGROUPS;
use crate::caps::table::measured::TILE64_LONG_COLUMNS;
use crate::elementwise::add::add_bias;
use crate::kernel::random::Gen;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};
use gguf::GgmlType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_tile64_pair", case)];

/// Two products of the same rows, of every format with units or of 16 bits, with partly filled last
/// tiles, with and without biases, and the activations of [`crate::matmul::matmul_tile64`].
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.tiles().is_some());
    let (n, other_n, long) = g.pick(&[
        (TILE * least_workgroups(USUAL_WORKGROUPS) - 97, 97, 0),
        (31, TILE * least_workgroups(USUAL_WORKGROUPS), 0),
        (TILE * 72 + 1, TILE * 72, 0),
        // Narrow workgroups.
        (31, 97, TILE64_LONG_COLUMNS),
        (129, 17, TILE64_LONG_COLUMNS),
        // Long ones.
        (TILE * LONG - 1, TILE + 1, TILE64_LONG_COLUMNS),
    ]);
    // Subgroups have units for one round and for two.
    let cols = columns(g, ty) + long.max(g.pick(&[0, 512]));
    recorded(g, cols, &[(n, ty), (other_n, ty)])
}

/// Products of the same rows with weights of these formats and numbers of rows, with partly filled
/// last tiles, with and without biases.
pub(crate) fn recorded(g: &mut Gen, cols: u32, weights: &[(u32, GgmlType)]) -> Case {
    let rows = g.pick(&[9, 16, 17, 32, 33, 48, 64, 65, 80, 81, 96, 129]);
    let mut case = Case::perhaps_full(g, rows);
    case.options = case.options.precision(Precision::Fast);
    case.halves = true;
    let fewest = weights.iter().map(|(n, _)| *n).min().unwrap_or(0);
    let x = activations(&mut case, g, cols, fewest);
    for &(n, ty) in weights {
        let w = case.weight(g, ty, n, cols);
        let bias = g.coin().then(|| case.vector(g, n));
        let y = matmul(&mut case.rec, w, x);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
