//! Parity cases of `matmul`.

use super::matmul::matmul;
use crate::elementwise::add::add_bias;
use crate::graph::tensor::StateKind;
use crate::kernel::random::Gen;
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul", case), ("matmul_state", state_case)];

/// Every format, tile edges in all three dimensions, row lengths that are not a multiple of 4,
/// weights in pieces, few tiles and many.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.dim().min(130) + 1, g.format());
    let (cols, n) = (g.cols(ty), g.dim().min(300));
    let mut case = Case::new(rows);
    case.workgroups = g.pick(&[None, Some(1)]);
    let w = case.weight(g, ty, n, cols);
    let x = case.tensor(g, cols);
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul(&mut case.rec, w, x);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}

/// Products, norms and biases with weights that states hold as plain words, in every rounding that
/// a plan may choose.
pub fn state_case(g: &mut Gen) -> Case {
    let (rows, cols, n) = (g.dim().min(130) + 1, 4 * g.pick(&[1, 8, 33, 64]), g.dim().min(300));
    let mut case =
        Case::with_states(rows, &[StateKind::Words(n * cols), StateKind::Words(cols), StateKind::Words(n)], 2, 3);
    let [w, norm, bias] = [(0, n, cols), (1, 1, cols), (2, 1, n)].map(|(state, rows, cols)| {
        let state = case.rec.state(state);
        case.state_weight(g, state, rows, cols)
    });
    let x = case.tensor(g, cols);
    let x = rms_norm(&mut case.rec, x, Some(norm), 1e-6);
    let y = matmul(&mut case.rec, w, x);
    let y = add_bias(&mut case.rec, y, bias);
    case.expect(y);
    case
}
