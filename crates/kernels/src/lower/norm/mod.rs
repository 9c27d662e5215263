//! Kernels of norms and rotations, and of the operations merged with them.

pub mod add_rms_norm;
pub mod norm_add;
pub mod norm_add_f16;
pub mod norm_pack_f16;
pub mod norm_pack_q8;
pub mod norm_rope;
pub mod norm_rope_append;
pub mod norm_rope_heads;
