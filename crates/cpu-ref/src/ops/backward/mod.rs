//! Derivatives and the step of an optimizer: one file per operation. A derivative takes the
//! derivative of a loss by the result of an operation, `dy`, and gives the derivative by an
//! operand.

mod adamw;
mod add_weighted_backward;
mod add_weighted_backward_c;
mod attention_backward_kv;
mod attention_backward_q;
mod attention_delta;
mod attention_lse;
mod column_sum;
mod combine_experts_backward;
mod count_step;
mod cross_entropy;
mod cross_entropy_backward;
mod embed_backward;
mod gather_rows_backward;
mod gaussian_top_k_backward;
mod geglu_backward;
mod gelu_backward;
mod join_columns;
mod log_softmax_backward;
mod match_rms_backward;
mod matmul_experts_input;
mod matmul_input;
mod matmul_weight;
mod mul_sigmoid_backward;
mod rms_norm_backward;
mod rms_norm_weight_backward;
mod rope_backward;
mod route_backward;
mod silu_backward;
mod softcap_backward;
mod softmax_backward;
mod sum_slots;
mod sum_squares;
mod swiglu_backward;

#[cfg(test)]
mod differences;

pub use adamw::{AdamwSpec, AdamwStep, Adapted, adamw};
pub use add_weighted_backward::add_weighted_backward;
pub use add_weighted_backward_c::add_weighted_backward_c;
pub use attention_backward_kv::{attention_backward_kv, attention_backward_kv_rounded};
pub use attention_backward_q::{attention_backward_q, attention_backward_q_rounded};
pub use attention_delta::attention_delta;
pub use attention_lse::attention_lse;
pub use column_sum::column_sum;
pub use combine_experts_backward::combine_experts_backward;
pub use count_step::count_step;
pub use cross_entropy::cross_entropy;
pub use cross_entropy_backward::cross_entropy_backward;
pub use embed_backward::embed_backward;
pub use gather_rows_backward::gather_rows_backward;
pub use gaussian_top_k_backward::gaussian_top_k_backward;
pub use geglu_backward::geglu_backward;
pub use gelu_backward::gelu_backward;
pub use join_columns::join_columns;
pub use log_softmax_backward::log_softmax_backward;
pub use match_rms_backward::match_rms_backward;
pub use matmul_experts_input::matmul_experts_input;
pub use matmul_input::matmul_input;
pub use matmul_weight::matmul_weight;
pub use mul_sigmoid_backward::mul_sigmoid_backward;
pub use rms_norm_backward::rms_norm_backward;
pub use rms_norm_weight_backward::rms_norm_weight_backward;
pub use rope_backward::rope_backward;
pub use route_backward::route_backward;
pub use silu_backward::silu_backward;
pub use softcap_backward::softcap_backward;
pub use softmax_backward::softmax_backward;
pub use sum_slots::sum_slots;
pub use sum_squares::sum_squares;
pub use swiglu_backward::swiglu_backward;
