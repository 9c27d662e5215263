//! Kernels of products with weights.

pub mod glu_matmul_vec;
pub mod ladder;
pub mod matmul_input_tile128;
pub mod matmul_narrow;
pub mod matmul_rows8;
pub mod matmul_rows8_experts;
pub mod matmul_rows8_experts_glu;
pub mod matmul_rows8_glu;
pub mod matmul_rows8_group;
pub mod matmul_tile128;
pub mod matmul_tile128_glu;
pub mod matmul_tile64;
pub mod matmul_tile64_experts;
pub mod matmul_tile64_pair;
pub mod matmul_tile64_triple;
pub mod matmul_vec;
pub mod matmul_vec_glu;
pub mod matmul_vec_group;
pub mod matmul_vec_norm;
pub mod matmul_vec_q8;
pub mod matmul_vec_q8_experts;
pub mod matmul_vec_q8_experts_glu;
pub mod matmul_vec_q8_experts_sum;
pub mod matmul_weight_tile128;
pub mod norm_add_matmul_vec;
pub mod norm_add_matmul_vec_glu;
pub mod norm_matmul_vec;
pub mod norm_matmul_vec_glu;
pub mod norm_matmul_vec_glu_teams;
pub mod norm_matmul_vec_group;
pub mod norm_matmul_vec_teams;
pub mod norm_pack_matmul_vec;
pub mod norm_pack_matmul_vec_glu;
pub mod product;

#[allow(clippy::module_inception)] // A kernel has its file's name.
pub mod matmul;
