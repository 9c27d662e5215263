//! Blocks of 32 with one scale (Q4_0, Q5_0, Q8_0), a scale and a minimum (Q4_1, Q5_1) or a scale
//! and a sum (Q8_1); blocks of 128 signs (Q1_0).

use super::{f16, u32};

pub fn q1_0(block: &[u8; 18], out: &mut [f32; 128]) {
    let d = f16(block, 0);
    for (i, out) in out.iter_mut().enumerate() {
        *out = if block[2 + i / 8] >> (i % 8) & 1 == 1 { d } else { -d };
    }
}

pub fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = f16(block, 0);
    for (i, &qs) in block[2..].iter().enumerate() {
        out[i] = d * ((qs & 15) as i8 - 8) as f32;
        out[i + 16] = d * ((qs >> 4) as i8 - 8) as f32;
    }
}

pub fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (f16(block, 0), f16(block, 2));
    for (i, &qs) in block[4..].iter().enumerate() {
        out[i] = d * (qs & 15) as f32 + m;
        out[i + 16] = d * (qs >> 4) as f32 + m;
    }
}

pub fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let (d, qh) = (f16(block, 0), u32(block, 2));
    for (i, &qs) in block[6..].iter().enumerate() {
        out[i] = d * (fifth_bit(qs & 15, qh, i) as i8 - 16) as f32;
        out[i + 16] = d * (fifth_bit(qs >> 4, qh, i + 16) as i8 - 16) as f32;
    }
}

pub fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m, qh) = (f16(block, 0), f16(block, 2), u32(block, 4));
    for (i, &qs) in block[8..].iter().enumerate() {
        out[i] = d * fifth_bit(qs & 15, qh, i) as f32 + m;
        out[i + 16] = d * fifth_bit(qs >> 4, qh, i + 16) as f32 + m;
    }
}

pub fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = f16(block, 0);
    for (out, &q) in out.iter_mut().zip(&block[2..]) {
        *out = q as i8 as f32 * d;
    }
}

pub fn q8_1(block: &[u8; 36], out: &mut [f32; 32]) {
    let d = f16(block, 0);
    for (out, &q) in out.iter_mut().zip(&block[4..]) {
        *out = q as i8 as f32 * d;
    }
}

fn fifth_bit(low: u8, high_bits: u32, i: usize) -> u8 {
    low | ((high_bits >> i & 1) << 4) as u8
}

pub fn quantize_q4_0(x: &[f32; 32], block: &mut [u8; 18]) {
    let inverse = symmetric_scale(x, 8.0, block);
    pack_nibbles(&mut block[2..], |i| level(x[i] * inverse + 8.5, 15));
}

pub fn quantize_q4_1(x: &[f32; 32], block: &mut [u8; 20]) {
    let (min, inverse) = affine_scale(x, 15.0, block);
    pack_nibbles(&mut block[4..], |i| level((x[i] - min) * inverse + 0.5, 15));
}

pub fn quantize_q5_0(x: &[f32; 32], block: &mut [u8; 22]) {
    let inverse = symmetric_scale(x, 16.0, block);
    let q: [u8; 32] = std::array::from_fn(|i| level(x[i] * inverse + 16.5, 31));
    block[2..6].copy_from_slice(&fifth_bits(&q));
    pack_nibbles(&mut block[6..], |i| q[i] & 15);
}

pub fn quantize_q5_1(x: &[f32; 32], block: &mut [u8; 24]) {
    let (min, inverse) = affine_scale(x, 31.0, block);
    let q: [u8; 32] = std::array::from_fn(|i| level((x[i] - min) * inverse + 0.5, 31));
    block[4..8].copy_from_slice(&fifth_bits(&q));
    pack_nibbles(&mut block[8..], |i| q[i] & 15);
}

pub fn quantize_q8_0(x: &[f32; 32], block: &mut [u8; 34]) {
    let d = x.iter().fold(0.0f32, |max, x| max.max(x.abs())) / 127.0;
    put_f16(block, 0, d);
    let inverse = inverse_or_zero(d);
    for (q, x) in block[2..].iter_mut().zip(x) {
        *q = (x * inverse).round() as i8 as u8;
    }
}

/// Writes d = (the value furthest from zero) / -half, so that this value gets the lowest level
/// exactly. Returns 1/d.
fn symmetric_scale(x: &[f32; 32], half: f32, block: &mut [u8]) -> f32 {
    let furthest = x.iter().fold(0.0f32, |far, &x| if x.abs() > far.abs() { x } else { far });
    let d = furthest / -half;
    put_f16(block, 0, d);
    inverse_or_zero(d)
}

/// Writes d = (max - min) / levels and m = min; returns (min, 1/d).
fn affine_scale(x: &[f32; 32], levels: f32, block: &mut [u8]) -> (f32, f32) {
    let min = x.iter().copied().fold(f32::INFINITY, f32::min);
    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let d = (max - min) / levels;
    put_f16(block, 0, d);
    put_f16(block, 2, min);
    (min, inverse_or_zero(d))
}

pub fn put_f16(block: &mut [u8], at: usize, value: f32) {
    block[at..at + 2].copy_from_slice(&half::f16::from_f32(value).to_le_bytes());
}

fn inverse_or_zero(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// Truncates to a level. The caller has added 1/2, so the result is rounded.
fn level(x: f32, max: u8) -> u8 {
    (x as u8).min(max)
}

fn pack_nibbles(qs: &mut [u8], q: impl Fn(usize) -> u8) {
    for (i, byte) in qs.iter_mut().enumerate() {
        *byte = q(i) | q(i + 16) << 4;
    }
}

fn fifth_bits(q: &[u8; 32]) -> [u8; 4] {
    let bits = q.iter().enumerate().fold(0u32, |bits, (i, &q)| bits | ((q >> 4) as u32) << i);
    bits.to_le_bytes()
}
