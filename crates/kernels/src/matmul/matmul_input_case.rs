//! Parity cases of `matmul_input`.

use super::matmul_input::matmul_input;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_input", case)];

/// Every format, tile edges in all three dimensions, row lengths that are not a multiple of 4,
/// weights in pieces.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.dim().min(130) + 1, g.format());
    let (cols, n) = (g.cols(ty), g.dim().min(300));
    let mut case = Case::new(rows);
    let w = case.weight(g, ty, n, cols);
    let dy = case.tensor(g, n);
    let dx = matmul_input(&mut case.rec, w, dy);
    case.expect(dx);
    case
}
