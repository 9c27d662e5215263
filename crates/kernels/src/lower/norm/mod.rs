//! Kernels of norms, rotations and sums with their neighbours.

pub mod add_rms_norm;
pub mod norm_add;
pub mod norm_pack_f16;
pub mod norm_pack_q8;
pub mod norm_rope;
pub mod norm_rope_append;
pub mod norm_rope_heads;
