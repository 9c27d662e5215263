//! One file per operation, with the same name as its shader and the file of its kernel.

mod embed;
mod match_rms;
mod rms_norm;

mod level_f16;
mod matmul;
mod matmul_vec;
mod pack_f16;
mod pack_q8;

mod combine_experts;
mod group_experts;
mod matmul_experts;
mod matmul_vec_experts;
mod mul_sigmoid;
mod route;

mod add;
mod add_weighted;
mod mul;
mod scale;
mod softcap;

mod silu;
mod swiglu;

mod gaussian_top_k;
mod geglu;
mod gelu;

mod rope;

mod attention;
mod attention_flash;
mod dropout;
mod gather_rows;
mod kv_append;

mod log_softmax;
mod softmax;

mod argmax;
mod top_k;

mod log_prob;
mod penalize;
mod sample;
mod sample_threshold;
mod threefry;

mod backward;

pub use add::add;
pub use add_weighted::{RowWeights, add_weighted};
pub use argmax::argmax;
pub use attention::{AttentionSpec, Mask, attention};
pub use attention_flash::{FlashTiles, attention_flash, round_f16};
pub use backward::*;
pub use combine_experts::combine_experts;
pub use dropout::dropout;
pub use embed::embed;
pub use gather_rows::gather_rows;
pub use gaussian_top_k::gaussian_top_k;
pub use geglu::geglu;
pub use gelu::gelu;
pub use group_experts::group_experts;
pub use kv_append::{KvType, kv_append, kv_read};
pub use level_f16::level_f16;
pub use log_prob::log_prob;
pub use log_softmax::log_softmax;
pub use match_rms::match_rms;
pub use matmul::matmul;
pub use matmul_experts::matmul_experts;
pub use matmul_vec::matmul_vec;
pub use matmul_vec_experts::matmul_vec_experts;
pub use mul::mul;
pub use mul_sigmoid::mul_sigmoid;
pub use pack_f16::{pack_f16, pack_f16_as_is, unpack_f16};
pub use pack_q8::{near_ties, norm_pack_q8, pack_q8, unpack_q8};
pub use penalize::penalize;
pub use rms_norm::rms_norm;
pub use rope::{RopeSpec, rope, rope_frequencies, rope_rows};
pub use route::{RouteSpec, route};
pub use sample::{SampleSpec, sample};
pub use sample_threshold::sample_threshold;
pub use scale::scale;
pub use silu::silu;
pub use softcap::softcap;
pub use softmax::softmax;
pub use swiglu::swiglu;
pub use threefry::threefry2x32;
pub use top_k::top_k;
