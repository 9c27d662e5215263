//! Derivatives: one file per backward operation. Each takes the derivative of a loss by the result
//! of an operation, `dy`, and gives the derivative by an operand.

mod attention_backward_kv;
mod attention_backward_q;
mod attention_delta;
mod attention_lse;
mod cross_entropy;
mod cross_entropy_backward;
mod gather_rows_backward;
mod geglu_backward;
mod join_columns;
mod matmul_input;
mod matmul_weight;
mod rms_norm_backward;
mod rope_backward;
mod softcap_backward;
mod swiglu_backward;

#[cfg(test)]
mod differences;

pub use attention_backward_kv::attention_backward_kv;
pub use attention_backward_q::attention_backward_q;
pub use attention_delta::attention_delta;
pub use attention_lse::attention_lse;
pub use cross_entropy::cross_entropy;
pub use cross_entropy_backward::cross_entropy_backward;
pub use gather_rows_backward::gather_rows_backward;
pub use geglu_backward::geglu_backward;
pub use join_columns::join_columns;
pub use matmul_input::matmul_input;
pub use matmul_weight::matmul_weight;
pub use rms_norm_backward::rms_norm_backward;
pub use rope_backward::rope_backward;
pub use softcap_backward::softcap_backward;
pub use swiglu_backward::swiglu_backward;
