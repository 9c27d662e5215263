//! Parity cases of `matmul_vec_experts`.

use crate::kernel::random::Gen;
use crate::ops::matmul_vec_experts::MAX_ROWS;
use crate::testing::cases::matmul_experts::product;
use crate::testing::parity::Case;

/// Same as `matmul_experts`, with up to eight rows.
pub fn case(g: &mut Gen) -> Case {
    let rows = g.pick(&[1, 1, 2, 3, 5, MAX_ROWS]);
    product(g, rows)
}
