//! The list of all kernels.

use super::attention::{
    attention_backward_kv_flash, attention_backward_q_flash, attention_lse_flash, attention_merge, attention_merge_parts,
    ladder as of_attention, merge_matmul_vec,
};
use super::matmul::{
    glu_matmul_vec, ladder as of_products, matmul_input_tile128, matmul_narrow, matmul_rows8_experts, matmul_rows8_experts_glu,
    matmul_rows8_glu, matmul_rows8_group, matmul_tile64_experts, matmul_tile64_pair, matmul_tile64_triple, matmul_tile128,
    matmul_tile128_glu, matmul_vec_glu, matmul_vec_group, matmul_vec_norm, matmul_vec_q8_experts, matmul_vec_q8_experts_glu,
    matmul_vec_q8_experts_sum, matmul_weight_tile128, norm_add_matmul_vec, norm_add_matmul_vec_glu, norm_matmul_vec, norm_matmul_vec_glu,
    norm_matmul_vec_glu_teams, norm_matmul_vec_group, norm_matmul_vec_teams, norm_pack_matmul_vec, norm_pack_matmul_vec_glu,
};
use super::norm::{add_rms_norm, norm_add, norm_pack_f16, norm_pack_q8, norm_rope, norm_rope_append, norm_rope_heads};
use super::pack::{gather_slots, glu_pack_f16, glu_pack_q8, level_f16, pack_f16, pack_q8};
use crate::kernel::{Kernel, Variant};
use crate::ops::backward::{
    adamw, add_weighted_backward, add_weighted_backward_c, attention_backward_kv, attention_backward_q, attention_delta, attention_lse,
    column_sum, combine_experts_backward, count_step, cross_entropy, cross_entropy_backward, embed_backward, gather_rows_backward,
    gaussian_top_k_backward, geglu_backward, gelu_backward, join_columns, log_softmax_backward, match_rms_backward, matmul_experts_input,
    matmul_input, matmul_vec_experts_input, matmul_weight, mul_sigmoid_backward, rms_norm_backward, rms_norm_weight_backward,
    rope_backward, route_backward, silu_backward, softcap_backward, softmax_backward, sum_slots, sum_squares, swiglu_backward,
};
use crate::ops::{
    add, add_weighted, argmax, combine_experts, dropout, embed, gather_rows, gaussian_top_k, geglu, gelu, group_experts, kv_append,
    log_softmax, match_rms, matmul_experts, matmul_vec_experts, mul, mul_sigmoid, penalize, rms_norm, rope, route, sample, sample_scan,
    scale, silu, softcap, softmax, swiglu, top_k,
};

/// The kernels that are in no ladder, by the file that declares them.
static OTHERS: &[&Kernel] = &[
    &add::ADD,
    &add_rms_norm::ADD_RMS_NORM,
    &add_weighted::ADD_WEIGHTED,
    &argmax::ARGMAX,
    &attention_backward_kv::ATTENTION_BACKWARD_KV,
    &attention_backward_q::ATTENTION_BACKWARD_Q,
    &attention_backward_kv_flash::ATTENTION_BACKWARD_KV_FLASH,
    &attention_backward_q_flash::ATTENTION_BACKWARD_Q_FLASH,
    &attention_lse_flash::ATTENTION_LSE_FLASH,
    &attention_delta::ATTENTION_DELTA,
    &attention_lse::ATTENTION_LSE,
    &combine_experts::COMBINE_EXPERTS,
    &attention_merge::ATTENTION_MERGE,
    &attention_merge::ATTENTION_MERGE_Q8,
    &attention_merge_parts::ATTENTION_MERGE_PARTS,
    &cross_entropy::CROSS_ENTROPY,
    &cross_entropy_backward::CROSS_ENTROPY_BACKWARD,
    &embed::EMBED,
    &gather_rows::GATHER_ROWS,
    &gather_slots::GATHER_SLOTS,
    &gather_rows_backward::GATHER_ROWS_BACKWARD,
    &gaussian_top_k::GAUSSIAN_TOP_K,
    &geglu::GEGLU,
    &geglu_backward::GEGLU_BACKWARD,
    &join_columns::JOIN_COLUMNS,
    &gelu::GELU,
    &group_experts::GROUP_EXPERTS,
    &glu_matmul_vec::GLU_MATMUL_VEC,
    &glu_pack_f16::GLU_PACK_F16,
    &glu_pack_q8::GLU_PACK_Q8,
    &kv_append::KV_APPEND,
    &level_f16::LEVEL_F16,
    &log_softmax::LOG_SOFTMAX,
    &match_rms::MATCH_RMS,
    &matmul_tile128::MATMUL_TILE128,
    &matmul_tile128::MATMUL_TILE128_HALVES,
    &matmul_tile128_glu::MATMUL_TILE128_GLU,
    &matmul_experts::MATMUL_EXPERTS,
    &matmul_input::MATMUL_INPUT,
    &matmul_input_tile128::MATMUL_INPUT_TILE128,
    &matmul_input_tile128::MATMUL_INPUT_TILE128_GROUPS,
    &matmul_weight::MATMUL_WEIGHT,
    &matmul_weight_tile128::MATMUL_WEIGHT_TILE128,
    &matmul_vec_experts::MATMUL_VEC_EXPERTS,
    &matmul_rows8_experts::MATMUL_ROWS8_EXPERTS,
    &matmul_rows8_experts_glu::MATMUL_ROWS8_EXPERTS_GLU,
    &matmul_vec_q8_experts::MATMUL_VEC_Q8_EXPERTS,
    &matmul_vec_q8_experts_glu::MATMUL_VEC_Q8_EXPERTS_GLU,
    &matmul_vec_q8_experts_glu::ROUTE_MATMUL_VEC_Q8_EXPERTS_GLU,
    &matmul_vec_q8_experts_sum::MATMUL_VEC_Q8_EXPERTS_SUM,
    &norm_matmul_vec::NORM_MATMUL_VEC,
    &norm_matmul_vec_glu::NORM_MATMUL_VEC_GLU,
    &norm_matmul_vec_glu_teams::NORM_MATMUL_VEC_GLU_TEAMS,
    &norm_matmul_vec_group::NORM_MATMUL_VEC_GROUP,
    &norm_matmul_vec_teams::NORM_MATMUL_VEC_TEAMS,
    &matmul_narrow::MATMUL_NARROW,
    &matmul_tile64_experts::MATMUL_TILE64_EXPERTS,
    &matmul_tile64_pair::MATMUL_TILE64_PAIR,
    &matmul_tile128::MATMUL_TILE128_PAIR,
    &matmul_tile128::MATMUL_TILE128_HALVES_PAIR,
    &matmul_tile64_triple::MATMUL_TILE64_TRIPLE,
    &matmul_rows8_group::MATMUL_ROWS8_GROUP,
    &matmul_rows8_glu::MATMUL_ROWS8_GLU,
    &matmul_vec_glu::MATMUL_VEC_GLU,
    &matmul_vec_group::MATMUL_VEC_GROUP,
    &matmul_vec_norm::MATMUL_VEC_NORM,
    &merge_matmul_vec::MERGE_MATMUL_VEC,
    &mul::MUL,
    &mul_sigmoid::MUL_SIGMOID,
    &norm_add::NORM_ADD,
    &norm_add::NORM_ADD_Q8,
    &norm_add::NORM_ADD_PAIR,
    &norm_add_matmul_vec::NORM_ADD_MATMUL_VEC,
    &norm_add_matmul_vec_glu::NORM_ADD_MATMUL_VEC_GLU,
    &norm_pack_matmul_vec::NORM_PACK_MATMUL_VEC,
    &norm_pack_matmul_vec_glu::NORM_PACK_MATMUL_VEC_GLU,
    &norm_pack_f16::NORM_PACK_F16,
    &norm_pack_q8::NORM_PACK_Q8,
    &norm_rope::NORM_ROPE,
    &norm_rope_append::NORM_ROPE_APPEND,
    &norm_rope_heads::NORM_ROPE_HEADS,
    &pack_f16::PACK_F16,
    &pack_q8::PACK_Q8,
    &penalize::PENALIZE,
    &rms_norm::RMS_NORM,
    &rms_norm_backward::RMS_NORM_BACKWARD,
    &rope::ROPE,
    &rope_backward::ROPE_BACKWARD,
    &route::ROUTE,
    &sample::SAMPLE,
    &sample_scan::SAMPLE_SCAN,
    &scale::SCALE,
    &silu::SILU,
    &softcap::SOFTCAP,
    &softcap_backward::SOFTCAP_BACKWARD,
    &softmax::SOFTMAX,
    &swiglu::SWIGLU,
    &swiglu_backward::SWIGLU_BACKWARD,
    &adamw::ADAMW,
    &add_weighted_backward::ADD_WEIGHTED_BACKWARD,
    &add_weighted_backward_c::ADD_WEIGHTED_BACKWARD_C,
    &column_sum::COLUMN_SUM,
    &combine_experts_backward::COMBINE_EXPERTS_BACKWARD,
    &count_step::COUNT_STEP,
    &embed_backward::EMBED_BACKWARD,
    &gaussian_top_k_backward::GAUSSIAN_TOP_K_BACKWARD,
    &gelu_backward::GELU_BACKWARD,
    &log_softmax_backward::LOG_SOFTMAX_BACKWARD,
    &match_rms_backward::MATCH_RMS_BACKWARD,
    &matmul_experts_input::MATMUL_EXPERTS_INPUT,
    &mul_sigmoid_backward::MUL_SIGMOID_BACKWARD,
    &rms_norm_weight_backward::RMS_NORM_WEIGHT_BACKWARD,
    &route_backward::ROUTE_BACKWARD,
    &silu_backward::SILU_BACKWARD,
    &softmax_backward::SOFTMAX_BACKWARD,
    &sum_slots::SUM_SLOTS,
    &sum_squares::SUM_SQUARES,
    &matmul_vec_experts_input::MATMUL_VEC_EXPERTS_INPUT,
    &dropout::DROPOUT,
    &top_k::TOP_K,
];

/// Every kernel by name: the rungs of the ladders and all others. `tests/contract.rs` compares the
/// list with the sources.
#[must_use]
pub fn kernels() -> Vec<&'static Kernel> {
    let products = of_products::LADDER.iter().map(|rung| rung.kernel);
    let attention = of_attention::LADDER.iter().map(|rung| rung.kernel);
    let mut all: Vec<_> = OTHERS.iter().copied().chain(products).chain(attention).collect();
    all.sort_unstable_by_key(|kernel| kernel.name);
    all
}

/// Every variant of every kernel.
pub fn variants() -> impl Iterator<Item = &'static Variant> {
    kernels().into_iter().flat_map(|kernel| kernel.variants).copied()
}
