//! The K formats: blocks of 256 in sub-blocks of 16 or 32, whose scales are themselves quantized.

use super::f16;

pub fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (scales, qs) = (&block[..16], &block[16..80]);
    let (d, dmin) = (f16(block, 80), f16(block, 82));
    for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = d * (scales[sub] & 15) as f32;
        let min = dmin * (scales[sub] >> 4) as f32;
        for (out, q) in out.iter_mut().zip(two_bits(qs, sub)) {
            *out = scale * q as f32 - min;
        }
    }
}

pub fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let (hmask, qs, scales, d) = (&block[..32], &block[32..96], &block[96..108], f16(block, 108));
    for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let low = scales[sub % 8] >> (4 * (sub / 8)) & 15;
        let high = scales[8 + sub % 4] >> (2 * (sub / 4)) & 3;
        let scale = d * ((low | high << 4) as i8 - 32) as f32;
        let high = hmask[sub % 2 * 16..].iter().map(|mask| mask >> (sub / 2) & 1);
        for (out, (q, high)) in out.iter_mut().zip(two_bits(qs, sub).zip(high)) {
            *out = scale * ((q | high << 2) as i8 - 4) as f32;
        }
    }
}

pub fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin, qs) = (f16(block, 0), f16(block, 2), &block[16..]);
    for (sub, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = scale_min(&block[4..16], sub);
        let (scale, min) = (d * scale as f32, dmin * min as f32);
        let qs = &qs[32 * (sub / 2)..][..32];
        for (out, q) in out.iter_mut().zip(qs) {
            *out = scale * (q >> (4 * (sub % 2)) & 15) as f32 - min;
        }
    }
}

pub fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, dmin, qh, qs) = (f16(block, 0), f16(block, 2), &block[16..48], &block[48..]);
    for (sub, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = scale_min(&block[4..16], sub);
        let (scale, min) = (d * scale as f32, dmin * min as f32);
        let qs = &qs[32 * (sub / 2)..][..32];
        for (out, (q, high)) in out.iter_mut().zip(qs.iter().zip(qh)) {
            let q = q >> (4 * (sub % 2)) & 15 | (high >> sub & 1) << 4;
            *out = scale * q as f32 - min;
        }
    }
}

pub fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (ql, qh, scales, d) = (&block[..128], &block[128..192], &block[192..208], f16(block, 208));
    for (half, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let (ql, qh) = (&ql[64 * half..][..64], &qh[32 * half..][..32]);
        for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            // Sub-blocks 2 n and 2 n + 1 hold the 32 elements of quarter n.
            let (quarter, first) = (sub / 2, sub % 2 * 16);
            let scale = d * scales[8 * half + sub] as i8 as f32;
            let ql = &ql[32 * (quarter % 2) + first..][..16];
            for (out, (low, high)) in out.iter_mut().zip(ql.iter().zip(&qh[first..])) {
                let q = low >> (4 * (quarter / 2)) & 15 | (high >> (2 * quarter) & 3) << 4;
                *out = scale * (q as i8 - 32) as f32;
            }
        }
    }
}

pub fn q8_k(block: &[u8; 292], out: &mut [f32; 256]) {
    let d = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    for (out, &q) in out.iter_mut().zip(&block[4..260]) {
        *out = d * q as i8 as f32;
    }
}

/// The 16 codes of sub-block `sub`: 32 bytes hold 128 codes of 2 bits, the first 32 in the lowest
/// bits.
fn two_bits(codes: &[u8], sub: usize) -> impl Iterator<Item = u8> {
    codes[32 * (sub / 8) + sub % 2 * 16..][..16].iter().map(move |byte| byte >> (2 * (sub / 2 % 4)) & 3)
}

/// The 6-bit scale and minimum of sub-block `sub` of Q4_K and Q5_K. For sub-blocks 0..4, the scales
/// are the low 6 bits of bytes 0..4 and the minima of bytes 4..8. For sub-blocks 4..8, bytes 8..12
/// hold the low 4 bits, and the top 2 bits of bytes 0..8 hold the high bits.
pub fn scale_min(scales: &[u8], sub: usize) -> (u8, u8) {
    if sub < 4 {
        return (scales[sub] & 63, scales[sub + 4] & 63);
    }
    let low = scales[sub + 4];
    (low & 15 | scales[sub - 4] >> 6 << 4, low >> 4 | scales[sub] >> 6 << 4)
}
