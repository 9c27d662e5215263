//! Parity cases of `matmul_vec_experts`.

use super::matmul_experts_case::product;
use super::matmul_vec_experts::MAX_ROWS;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_vec_experts", case)];

/// The shapes and values of `matmul_experts`, for up to eight rows.
pub fn case(g: &mut Gen) -> Case {
    let rows = g.pick(&[1, 1, 2, 3, 5, MAX_ROWS]);
    product(g, rows)
}
