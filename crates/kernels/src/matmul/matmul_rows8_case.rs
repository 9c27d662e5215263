//! Parity cases of `matmul_rows8`.

use super::matmul_rows8::TILE;
use super::matmul_vec_q8::matmul_q8;
use crate::caps::table::USUAL_WORKGROUPS;
use crate::caps::table::measured::{ROWS8_COLUMNS, ROWS8_WORKGROUPS};
use crate::elementwise::add::add_bias;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_rows8", case)];

/// Number of workgroups that a case of eight rows should have.
const SHORT: u32 = ROWS8_COLUMNS[0];
const MANY: u32 = ROWS8_WORKGROUPS[2] * USUAL_WORKGROUPS;

/// Every format with units, rows around the workgroup's on both sides, columns for the lanes of one
/// subgroup, of four, and more; weights with so many rows that a workgroup takes more than four,
/// and the most that it can; blocks of zeros, and activations whose product applies the norm's
/// factor.
pub fn case(g: &mut Gen) -> Case {
    let (ty, rows) = (g.format_with(Format::in_8_bits), g.pick(&[2, 2, 3, 4, 4, 4, 5, 8, 9, 17, 70]));
    let cols = g.cols(ty) + g.pick(&[0, 0, SHORT, 4 * SHORT]);
    let most = if cols > 64 { 1 } else { (TILE - 4) * MANY + 1 };
    let n = if cols < 512 { g.pick(&[1, 2 * 4 * MANY + 3, most]) } else { g.dim() };
    let mut case = Case::perhaps_full(g, rows);
    let w = case.weight(g, ty, n, cols);
    let x = case.tensor(g, cols);
    let x = if n > 31 && g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    let bias = g.coin().then(|| case.vector(g, n));
    let packed = pack_q8(&mut case.rec, x);
    let y = matmul_q8(&mut case.rec, w, packed);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
