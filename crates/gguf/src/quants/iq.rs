//! The IQ formats: codebook entries with signs (IQ1 to IQ3) and non-linear levels (IQ4).

use super::tables::{
    IQ1_DELTA, IQ1_GRID, IQ2_S_GRID, IQ2_VALUES, IQ2_XS_GRID, IQ2_XXS_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ3_XXS_VALUES,
    IQ4_VALUES, SIGNS,
};
use super::{f16, nibble, u16, u32};

pub fn iq2_xxs(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = f16(block, 0);
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let group = 2 + at / 4 * 8;
        let scale_signs = u32(block, group + 4);
        let scale = d * (0.5 + (scale_signs >> 28) as f32) * 0.25;
        let entry = IQ2_XXS_GRID[block[group + at % 4] as usize];
        eight(out, scale, entry, SIGNS[(scale_signs >> (7 * (at % 4)) & 127) as usize]);
    }
}

pub fn iq2_xs(block: &[u8; 74], out: &mut [f32; 256]) {
    let (d, scales) = (f16(block, 0), &block[66..]);
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let q = u16(block, 2 + at * 2) as usize;
        let scale = d * (0.5 + nibble(scales, at / 2) as f32) * 0.25;
        eight(out, scale, IQ2_XS_GRID[q & 511], SIGNS[q >> 9]);
    }
}

pub fn iq2_s(block: &[u8; 82], out: &mut [f32; 256]) {
    let (d, qs, signs, qh, scales) = (f16(block, 0), &block[2..34], &block[34..66], &block[66..74], &block[74..]);
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let high = (qh[at / 4] >> (2 * (at % 4)) & 3) as usize;
        let scale = d * (0.5 + nibble(scales, at / 2) as f32) * 0.25;
        eight(out, scale, IQ2_S_GRID[qs[at] as usize | high << 8], signs[at]);
    }
}

/// Eight elements of a 2-bit codebook entry.
fn eight(out: &mut [f32; 8], scale: f32, entry: u16, signs: u8) {
    for (i, out) in out.iter_mut().enumerate() {
        let value = scale * IQ2_VALUES[(entry >> (2 * i) & 3) as usize] as f32;
        *out = if signs >> i & 1 == 1 { -value } else { value };
    }
}

pub fn iq3_xxs(block: &[u8; 98], out: &mut [f32; 256]) {
    let (d, qs) = (f16(block, 0), &block[2..66]);
    for (at, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let scale_signs = u32(block, 66 + at / 8 * 4);
        let scale = d * (0.5 + (scale_signs >> 28) as f32) * 0.5;
        let signs = SIGNS[(scale_signs >> (7 * (at / 2 % 4)) & 127) as usize] >> (4 * (at % 2));
        four(out, scale, IQ3_XXS_GRID[qs[at] as usize], signs, |code| IQ3_XXS_VALUES[code]);
    }
}

pub fn iq3_s(block: &[u8; 110], out: &mut [f32; 256]) {
    let (d, qs, qh, signs, scales) = (f16(block, 0), &block[2..66], &block[66..74], &block[74..106], &block[106..]);
    for (at, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let scale = d * (1 + 2 * nibble(scales, at / 8)) as f32;
        let high = (qh[at / 8] >> (at % 8) & 1) as usize;
        let entry = IQ3_S_GRID[qs[at] as usize | high << 8];
        four(out, scale, entry, nibble(signs, at), |code| 2 * code as u8 + 1);
    }
}

/// Four elements of a 3-bit codebook entry.
fn four(out: &mut [f32; 4], scale: f32, entry: u16, signs: u8, value: impl Fn(usize) -> u8) {
    for (i, out) in out.iter_mut().enumerate() {
        let value = scale * value((entry >> (4 * i) & 7) as usize) as f32;
        *out = if signs >> i & 1 == 1 { -value } else { value };
    }
}

pub fn iq1_s(block: &[u8; 50], out: &mut [f32; 256]) {
    let (d, qs) = (f16(block, 0), &block[2..34]);
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let qh = u16(block, 34 + at / 4 * 2);
        let scale = d * (2 * (qh >> 12 & 7) + 1) as f32;
        let high = (qh >> (3 * (at % 4)) & 7) as usize;
        eight_shifted(out, scale, qs[at] as usize | high << 8, qh & 0x8000 != 0);
    }
}

pub fn iq1_m(block: &[u8; 56], out: &mut [f32; 256]) {
    let (qs, qh) = (&block[..32], &block[32..48]);
    let scales: [u16; 4] = std::array::from_fn(|i| u16(block, 48 + 2 * i));
    // The block's f16 scale lies in the upper nibbles of the four words of 3-bit scales.
    let d = scales.iter().enumerate().fold(0, |bits, (i, s)| bits | s >> 12 << (4 * i));
    let d = half::f16::from_bits(d).to_f32();
    for (at, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let scale = scales[at / 8] >> (3 * (at / 2 % 4)) & 7;
        let high = nibble(qh, at);
        let entry = qs[at] as usize | ((high & 7) as usize) << 8;
        eight_shifted(out, d * (2 * scale + 1) as f32, entry, high & 8 != 0);
    }
}

/// Eight elements of -1, 0 or 1, all shifted by the same delta.
fn eight_shifted(out: &mut [f32; 8], scale: f32, entry: usize, down: bool) {
    let delta = if down { -IQ1_DELTA } else { IQ1_DELTA };
    for (i, out) in out.iter_mut().enumerate() {
        let code = (IQ1_GRID[entry] >> (2 * i) & 3) as i8 - 1;
        *out = scale * (code as f32 + delta);
    }
}

pub fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    sixteen_pairs(f16(block, 0), &block[2..], out);
}

pub fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let (d, scales_h, scales_l) = (f16(block, 0), u16(block, 2), &block[4..8]);
    for (sub, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let high = (scales_h >> (2 * sub) & 3) as u8;
        let scale = d * ((nibble(scales_l, sub) | high << 4) as i8 - 32) as f32;
        sixteen_pairs(scale, &block[8 + sub * 16..][..16], out);
    }
}

/// 32 elements of 16 levels: the low nibbles first, then the high nibbles.
fn sixteen_pairs(scale: f32, qs: &[u8], out: &mut [f32; 32]) {
    for (i, &q) in qs.iter().enumerate() {
        out[i] = scale * IQ4_VALUES[(q & 15) as usize] as f32;
        out[i + 16] = scale * IQ4_VALUES[(q >> 4) as usize] as f32;
    }
}
