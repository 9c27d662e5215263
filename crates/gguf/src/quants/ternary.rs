//! Ternary blocks of 256. A byte holds five digits in base 3 (TQ1_0) or four digits of 2 bits
//! (TQ2_0).

use super::f16;

pub fn tq1_0(block: &[u8; 54], out: &mut [f32; 256]) {
    let d = f16(block, 52);
    let (first, rest) = out.split_at_mut(160);
    let (second, third) = rest.split_at_mut(80);
    digits(d, &block[..32], first);
    digits(d, &block[32..48], second);
    digits(d, &block[48..52], third);
}

/// Digit n of byte i is element n * bytes + i. A byte is a fraction of 256, so the leading digit is
/// byte * 3 / 256.
fn digits(d: f32, bytes: &[u8], out: &mut [f32]) {
    for (n, out) in out.chunks_exact_mut(bytes.len()).enumerate() {
        for (out, byte) in out.iter_mut().zip(bytes) {
            let fraction = byte.wrapping_mul(3u8.pow(n as u32));
            *out = d * (((fraction as u16 * 3) >> 8) as i8 - 1) as f32;
        }
    }
}

pub fn tq2_0(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = f16(block, 64);
    for (at, out) in out.iter_mut().enumerate() {
        let code = block[at / 128 * 32 + at % 32] >> (2 * (at / 32 % 4)) & 3;
        *out = d * (code as i8 - 1) as f32;
    }
}
