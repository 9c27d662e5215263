//! The types of the linear layers in memory.

/// The types that the weights of the linear layers have in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Base {
    /// The types of the file.
    #[default]
    AsStored,
    /// NF4, made of F16, BF16 or F32 while the weights load: blocks of 64 elements with an f32
    /// absmax, 0.5625 bytes per weight (Dettmers et al. 2023, arXiv 2305.14314). The embedding, the
    /// output matrix, norms and routers keep the types of the file.
    Nf4,
    /// NF4_DQ: NF4 with the absmax of each block in 8 bits, 0.53125 bytes per weight (double
    /// quantization, section 3 of the paper of NF4). Rows are multiples of 256.
    Nf4Dq,
}
