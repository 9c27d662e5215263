//! Codebooks, values and sign patterns of the block formats. Public because they are uploaded for
//! GPU kernels.

mod iq1;
mod iq2;
mod iq3;

pub use iq1::IQ1_GRID;
pub use iq2::{IQ2_S_GRID, IQ2_XS_GRID, IQ2_XXS_GRID};
pub use iq3::{IQ3_S_GRID, IQ3_XXS_GRID};

/// The magnitudes that a 2-bit code of IQ2_XXS, IQ2_XS and IQ2_S selects (code 3 does not occur).
pub const IQ2_VALUES: [u8; 4] = [8, 25, 43, 0];

/// The magnitudes that a code of IQ3_XXS selects.
pub const IQ3_XXS_VALUES: [u8; 8] = [4, 12, 20, 28, 36, 44, 52, 62];

/// The 16 levels of IQ4_NL and IQ4_XS (ggml's `kvalues_iq4nl`).
pub const IQ4_VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Twice the 16 values of an E2M1 code, as MXFP4 and NVFP4 use them (ggml's `kvalues_mxfp4`).
pub const FP4_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The 16 values of NF4: quantiles of the normal distribution, scaled to [-1, 1] so that one is 0
/// (bitsandbytes' `get_4bit_type("nf4")`).
#[rustfmt::skip]
pub const NF4_VALUES: [f32; 16] = [
    -1.0, -0.696_192_8, -0.525_073_05, -0.394_917_5, -0.284_441_38, -0.184_773_43, -0.091_050_036, 0.0,
    0.079_580_3, 0.160_930_2, 0.246_112_3, 0.337_915_24, 0.440_709_83, 0.562_617, 0.722_956_84, 1.0,
];

/// The shift that IQ1_S and IQ1_M add to or subtract from every grid value.
pub const IQ1_DELTA: f32 = 0.125;

/// Eight sign bits for a 7-bit pattern. The eighth bit makes the number of minus signs even (ggml's
/// `ksigns_iq2xs`).
pub const SIGNS: [u8; 128] = even_signs();

const fn even_signs() -> [u8; 128] {
    let mut signs = [0; 128];
    let mut i = 0;
    while i < 128 {
        signs[i] = i as u8 | ((i.count_ones() as u8 & 1) << 7);
        i += 1;
    }
    signs
}
