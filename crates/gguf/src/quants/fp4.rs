//! 4-bit floats (E2M1): MXFP4 with a power of two per 32 elements, NVFP4 with an unsigned E4M3 per
//! 16.

use super::tables::FP4_VALUES;

pub fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    halves(half_power_of_two(block[0]), &block[1..], out);
}

pub fn nvfp4(block: &[u8; 36], out: &mut [f32; 64]) {
    for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        halves(half_e4m3(block[sub]), &block[4 + sub * 8..][..8], out);
    }
}

/// Low nibbles first, then high nibbles. The table holds doubled values, so the caller passes half
/// the scale.
fn halves(half_scale: f32, qs: &[u8], out: &mut [f32]) {
    let (low, high) = out.split_at_mut(qs.len());
    for ((low, high), &q) in low.iter_mut().zip(high).zip(qs) {
        *low = half_scale * FP4_VALUES[(q & 15) as usize] as f32;
        *high = half_scale * FP4_VALUES[(q >> 4) as usize] as f32;
    }
}

/// 2^(e - 128): half of the E8M0 scale 2^(e - 127); the two smallest are subnormal.
fn half_power_of_two(e: u8) -> f32 {
    f32::from_bits(if e < 2 { 0x0020_0000 << e } else { (e as u32 - 1) << 23 })
}

/// Half of an unsigned E4M3 with bias 7; 0x7f (NaN) counts as 0 and the top bit is ignored, as in
/// ggml.
fn half_e4m3(byte: u8) -> f32 {
    let (exponent, mantissa) = (byte >> 3 & 15, (byte & 7) as f32);
    let value = match (byte, exponent) {
        (0 | 0x7f, _) => 0.0,
        (_, 0) => mantissa * (1.0 / 512.0),
        _ => (1.0 + mantissa / 8.0) * ((exponent as f32) - 7.0).exp2(),
    };
    value * 0.5
}
