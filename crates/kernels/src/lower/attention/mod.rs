//! Kernels of attention, and the ladder that chooses among them.

pub mod attention_backward_kv_flash;
pub mod attention_backward_q_flash;
pub mod attention_decode;
pub mod attention_decode_128;
pub mod attention_decode_256;
pub mod attention_decode_rows;
pub mod attention_decode_rows_f16;
pub mod attention_decode_split;
pub mod attention_decode_window;
pub mod attention_flash;
pub mod attention_lse_flash;
pub mod attention_merge;
pub mod attention_merge_parts;
pub mod attention_split;
pub mod attention_split_128;
pub mod attention_split_512;
pub mod attention_tile;
pub mod fused;
pub mod ladder;
pub mod merge_matmul_vec;
pub mod tile32;

#[allow(clippy::module_inception)] // A kernel has its file's name.
pub mod attention;
