//! The parity cases: a file for each operation, and for each kernel with its own shapes.

pub mod adamw;
pub mod add;
pub mod add_rms_norm;
pub mod add_weighted;
pub mod add_weighted_backward;
pub mod argmax;
pub mod attention;
pub mod attention_decode;
pub mod attention_decode_128;
pub mod attention_decode_256;
pub mod attention_decode_rows;
pub mod attention_decode_rows_f16;
pub mod attention_decode_split;
pub mod attention_flash;
pub mod attention_lse;
pub mod attention_merge;
pub mod attention_split;
pub mod attention_split_128;
pub mod attention_split_512;
pub mod attention_step;
pub mod attention_tile;
pub mod column_sum;
pub mod combine_experts;
pub mod combine_experts_backward;
pub mod cross_entropy;
pub mod dropout;
pub mod embed;
pub mod embed_backward;
pub mod gather_rows;
pub mod gather_rows_backward;
pub mod gather_slots;
pub mod gaussian_top_k;
pub mod gaussian_top_k_backward;
pub mod geglu;
pub mod geglu_backward;
pub mod gelu;
pub mod gelu_backward;
pub mod glu_matmul_vec;
pub mod glu_pack_f16;
pub mod glu_pack_q8;
pub mod group_experts;
pub mod join_columns;
pub mod kv_append;
pub mod level_f16;
pub mod log_softmax;
pub mod log_softmax_backward;
pub mod match_rms;
pub mod match_rms_backward;
pub mod matmul;
pub mod matmul_experts;
pub mod matmul_experts_input;
pub mod matmul_input;
pub mod matmul_input_tile128;
pub mod matmul_rows8;
pub mod matmul_rows8_experts;
pub mod matmul_rows8_glu;
pub mod matmul_rows8_group;
pub mod matmul_tile128;
pub mod matmul_tile128_glu;
pub mod matmul_tile128_pair;
pub mod matmul_tile64;
pub mod matmul_tile64_experts;
pub mod matmul_tile64_pair;
pub mod matmul_tile64_triple;
pub mod matmul_vec;
pub mod matmul_vec_experts;
pub mod matmul_vec_glu;
pub mod matmul_vec_group;
pub mod matmul_vec_norm;
pub mod matmul_vec_q8;
pub mod matmul_vec_q8_experts;
pub mod matmul_vec_q8_experts_glu;
pub mod matmul_weight;
pub mod matmul_weight_tile128;
pub mod merge_matmul_vec;
pub mod mul;
pub mod mul_sigmoid;
pub mod mul_sigmoid_backward;
pub mod norm_add;
pub mod norm_add_f16;
pub mod norm_add_matmul_vec;
pub mod norm_add_matmul_vec_glu;
pub mod norm_matmul_vec;
pub mod norm_matmul_vec_glu;
pub mod norm_matmul_vec_glu_teams;
pub mod norm_matmul_vec_group;
pub mod norm_matmul_vec_teams;
pub mod norm_pack_f16;
pub mod norm_pack_matmul_vec;
pub mod norm_pack_matmul_vec_glu;
pub mod norm_pack_q8;
pub mod norm_rope;
pub mod norm_rope_append;
pub mod norm_rope_heads;
pub mod pack_f16;
pub mod pack_q8;
pub mod penalize;
pub mod rms_norm;
pub mod rms_norm_backward;
pub mod rms_norm_weight_backward;
pub mod rope;
pub mod rope_backward;
pub mod route;
pub mod route_backward;
pub mod sample;
pub mod sample_scan;
pub mod scale;
pub mod silu;
pub mod silu_backward;
pub mod softcap;
pub mod softcap_backward;
pub mod softmax;
pub mod softmax_backward;
pub mod sum_slots;
pub mod sum_squares;
pub mod swiglu;
pub mod swiglu_backward;
pub mod top_k;

use super::parity::MakeCase;

/// The parity cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[
    ("embed", embed::case),
    ("embed_ids", embed::ids_case),
    ("rms_norm", rms_norm::case),
    ("matmul", matmul::case),
    ("matmul_state", matmul::state_case),
    ("pack_q8", pack_q8::case),
    ("pack_f16", pack_f16::case),
    ("norm_pack_q8", norm_pack_q8::case),
    ("norm_pack_f16", norm_pack_f16::case),
    ("gather_slots", gather_slots::case),
    ("level_f16", level_f16::case),
    ("matmul_tile128_glu", matmul_tile128_glu::case),
    ("matmul_tile128_pair", matmul_tile128_pair::case),
    ("matmul_tile128_pair_narrow", matmul_tile128_pair::case),
    ("matmul_tile128_halves_pair", matmul_tile128_pair::halves_case),
    ("matmul_tile128_halves_pair_narrow", matmul_tile128_pair::halves_case),
    ("norm_add", norm_add::case),
    ("norm_add_f16", norm_add_f16::case),
    ("glu_pack_q8", glu_pack_q8::case),
    ("glu_pack_f16", glu_pack_f16::case),
    ("norm_rope", norm_rope::case),
    ("norm_rope_append", norm_rope_append::case),
    ("norm_rope_heads", norm_rope_heads::case),
    ("matmul_tile64_experts", matmul_tile64_experts::case),
    ("matmul_tile64_pair", matmul_tile64_pair::case),
    ("matmul_tile64_triple", matmul_tile64_triple::case),
    ("matmul_vec_group", matmul_vec_group::case),
    ("matmul_vec_glu", matmul_vec_glu::case),
    ("matmul_vec_norm", matmul_vec_norm::case),
    ("matmul_vec_q8", matmul_vec_q8::case),
    ("norm_pack_matmul_vec", norm_pack_matmul_vec::case),
    ("norm_pack_matmul_vec_glu", norm_pack_matmul_vec_glu::case),
    ("norm_add_matmul_vec", norm_add_matmul_vec::case),
    ("norm_add_matmul_vec_glu", norm_add_matmul_vec_glu::case),
    ("glu_matmul_vec", glu_matmul_vec::case),
    ("merge_matmul_vec", merge_matmul_vec::case),
    ("attention_split", attention_split::case),
    ("attention_merge", attention_merge::case),
    ("attention_decode", attention_decode::case),
    ("attention_decode_rows_f16", attention_decode_rows_f16::case),
    ("rope", rope::case),
    ("kv_append", kv_append::case),
    ("attention", attention::case),
    ("attention_step", attention_step::case),
    ("add", add::case),
    ("add_rms_norm", add_rms_norm::case),
    ("add_weighted", add_weighted::case),
    ("match_rms", match_rms::case),
    ("gaussian_top_k", gaussian_top_k::case),
    ("mul", mul::case),
    ("scale", scale::case),
    ("softcap", softcap::case),
    ("silu", silu::case),
    ("gelu", gelu::case),
    ("swiglu", swiglu::case),
    ("geglu", geglu::case),
    ("softmax", softmax::case),
    ("log_softmax", log_softmax::case),
    ("gather_rows", gather_rows::case),
    ("argmax", argmax::case),
    ("top_k", top_k::case),
    ("route", route::case),
    ("group_experts", group_experts::case),
    ("matmul_experts", matmul_experts::case),
    ("combine_experts", combine_experts::case),
    ("mul_sigmoid", mul_sigmoid::case),
    ("penalize", penalize::case),
    ("sample", sample::case),
    ("attention_flash", attention_flash::case),
    ("attention_merge_parts", attention_split::case),
    ("attention_tile", attention_tile::case),
    ("attention_split_128", attention_split_128::case),
    ("attention_split_512", attention_split_512::case),
    ("attention_decode_split", attention_decode_split::case),
    ("attention_decode_128", attention_decode_128::case),
    ("attention_decode_rows", attention_decode_rows::case),
    ("attention_decode_window", merge_matmul_vec::case),
    ("attention_decode_256", attention_decode_256::case),
    ("matmul_tile128", matmul_tile128::case),
    ("matmul_vec", matmul_vec::case),
    ("matmul_vec_experts", matmul_vec_experts::case),
    ("matmul_vec_q8_experts", matmul_vec_q8_experts::case),
    ("matmul_vec_q8_experts_glu", matmul_vec_q8_experts_glu::case),
    ("matmul_vec_q8_experts_sum", matmul_vec_q8_experts_glu::sum_case),
    ("norm_matmul_vec", norm_matmul_vec::case),
    ("matmul_narrow", norm_matmul_vec::rows_case),
    ("norm_matmul_vec_group", norm_matmul_vec_group::case),
    ("norm_matmul_vec_teams", norm_matmul_vec_teams::case),
    ("norm_matmul_vec_glu", norm_matmul_vec_glu::case),
    ("norm_matmul_vec_glu_teams", norm_matmul_vec_glu_teams::case),
    ("matmul_tile64", matmul_tile64::case),
    ("matmul_rows8", matmul_rows8::case),
    ("matmul_rows8_experts", matmul_rows8_experts::case),
    ("matmul_rows8_experts_glu", matmul_rows8_experts::glu_case),
    ("matmul_rows8_glu", matmul_rows8_glu::case),
    ("matmul_rows8_group", matmul_rows8_group::case),
    ("matmul_vec_add", matmul_vec_q8::sum_case),
    ("sample_scan", sample_scan::case),
    ("matmul_input", matmul_input::case),
    ("matmul_input_tile128", matmul_input_tile128::case),
    ("matmul_weight", matmul_weight::case),
    ("matmul_weight_tile128", matmul_weight_tile128::case),
    ("rms_norm_backward", rms_norm_backward::case),
    ("rope_backward", rope_backward::case),
    ("swiglu_backward", swiglu_backward::case),
    ("gather_rows_backward", gather_rows_backward::case),
    ("geglu_backward", geglu_backward::case),
    ("softcap_backward", softcap_backward::case),
    ("join_columns", join_columns::case),
    ("cross_entropy", cross_entropy::case),
    ("cross_entropy_backward", cross_entropy::backward_case),
    ("attention_lse", attention_lse::case),
    ("attention_lse_flash", attention_lse::flash_case),
    ("attention_backward_q_flash", attention_lse::q_flash_case),
    ("attention_backward_kv_flash", attention_lse::kv_flash_case),
    ("attention_delta", attention_lse::delta_case),
    ("attention_backward_q", attention_lse::q_case),
    ("attention_backward_kv", attention_lse::kv_case),
    ("silu_backward", silu_backward::case),
    ("gelu_backward", gelu_backward::case),
    ("mul_sigmoid_backward", mul_sigmoid_backward::case),
    ("softmax_backward", softmax_backward::case),
    ("log_softmax_backward", log_softmax_backward::case),
    ("add_weighted_backward", add_weighted_backward::case),
    ("match_rms_backward", match_rms_backward::case),
    ("gaussian_top_k_backward", gaussian_top_k_backward::case),
    ("route_backward", route_backward::case),
    ("matmul_experts_input", matmul_experts_input::case),
    ("combine_experts_backward", combine_experts_backward::case),
    ("sum_slots", sum_slots::case),
    ("rms_norm_weight_backward", rms_norm_weight_backward::case),
    ("column_sum", column_sum::case),
    ("embed_backward", embed_backward::case),
    ("sum_squares", sum_squares::case),
    ("adamw", adamw::case),
    ("dropout", dropout::case),
    ("add_weighted_backward_c", add_weighted_backward::weights_case),
    ("matmul_vec_experts_input", matmul_experts_input::vec_case),
    ("count_step", adamw::count_case),
];
