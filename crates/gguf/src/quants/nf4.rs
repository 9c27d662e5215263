//! NF4, the 4-bit type of QLoRA (Dettmers et al. 2023, arXiv 2305.14314): quantiles of the normal
//! distribution times the largest magnitude of 64 elements. The low nibble of a byte is the earlier
//! element. In NF4_DQ the magnitudes are 8-bit shares of the largest of four (double quantization,
//! section 3 of the same paper, over the blocks of one row).

use super::nibble;
use super::tables::NF4_VALUES;

/// The values half way between a code and the next.
const BOUNDS: [f32; 15] = bounds();

/// The least divisor, for blocks of zeros. It is bitsandbytes', and above some subnormal numbers.
const LEAST: f32 = 1e-38;

const fn bounds() -> [f32; 15] {
    let (mut bounds, mut i) = ([0.0; 15], 0);
    while i < 15 {
        bounds[i] = (NF4_VALUES[i] + NF4_VALUES[i + 1]) / 2.0;
        i += 1;
    }
    bounds
}

pub fn nf4(block: &[u8; 36], out: &mut [f32; 64]) {
    let absmax = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    for (i, out) in out.iter_mut().enumerate() {
        *out = NF4_VALUES[nibble(&block[4..], i) as usize] * absmax;
    }
}

/// The nearest codes; half way is the lower code. The quotients are rounded as in bitsandbytes,
/// which multiplies by the inverse.
pub fn quantize_nf4(values: &[f32; 64], block: &mut [u8; 36]) {
    let absmax = absmax(values);
    block[..4].copy_from_slice(&absmax.to_le_bytes());
    write_codes(values, absmax, &mut block[4..]);
}

fn absmax(values: &[f32; 64]) -> f32 {
    values.iter().fold(0.0f32, |most, value| most.max(value.abs()))
}

fn write_codes(values: &[f32; 64], absmax: f32, bytes: &mut [u8]) {
    let (inverse, mut codes) = (1.0 / absmax.max(LEAST), [0u8; 64]);
    for bound in BOUNDS {
        codes.iter_mut().zip(values).for_each(|(code, value)| *code += u8::from(value * inverse > bound));
    }
    for (byte, [low, high]) in bytes.iter_mut().zip(codes.as_chunks().0) {
        *byte = low | high << 4;
    }
}

/// The largest scale of NF4_DQ.
const STEPS: f32 = 255.0;

pub fn nf4_dq(block: &[u8; 136], out: &mut [f32; 256]) {
    let d = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    for (i, out) in out.iter_mut().enumerate() {
        *out = NF4_VALUES[nibble(&block[8..], i) as usize] * (d * f32::from(block[4 + i / 64]));
    }
}

/// The nearest scales, and codes as of NF4 with the magnitudes that the scales give.
pub fn quantize_nf4_dq(values: &[f32; 256], block: &mut [u8; 136]) {
    let parts: &[[f32; 64]] = values.as_chunks().0;
    let most = parts.iter().map(absmax).fold(0.0f32, f32::max);
    let d = most / STEPS;
    block[..4].copy_from_slice(&d.to_le_bytes());
    for (n, part) in parts.iter().enumerate() {
        let scale = (absmax(part) / d.max(f32::MIN_POSITIVE)).round().min(STEPS);
        block[4 + n] = scale as u8;
        write_codes(part, d * scale, &mut block[8 + 32 * n..][..32]);
    }
}
