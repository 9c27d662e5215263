//! Kernels that round activations for products.

pub mod gather_slots;
pub mod glu_pack_f16;
pub mod glu_pack_q8;
pub mod level_f16;
pub mod pack_f16;
pub mod pack_q8;
