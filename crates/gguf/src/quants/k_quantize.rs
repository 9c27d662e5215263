//! Quantizers of Q4_K, Q5_K and Q6_K. They use ggml's search for scales without an importance
//! matrix.

use super::k::scale_min;
use super::legacy::put_f16;

/// Parameters of the search for a scale and a minimum: `steps` trials of (max level + first + step
/// * i) / range.
struct Search {
    levels: f32,
    first: f32,
    steps: usize,
}

/// The step between trial scales, in levels (ggml's `rdelta`).
const STEP: f32 = 0.1;
const Q4: Search = Search { levels: 15.0, first: -1.0, steps: 20 };
const Q5: Search = Search { levels: 31.0, first: -0.5, steps: 15 };

pub fn q4_k(x: &[f32; 256], block: &mut [u8; 144]) {
    let codes = affine_block(x, &Q4, &mut block[..16]);
    for (i, byte) in block[16..].iter_mut().enumerate() {
        let at = i / 32 * 64 + i % 32;
        *byte = codes[at] | codes[at + 32] << 4;
    }
}

pub fn q5_k(x: &[f32; 256], block: &mut [u8; 176]) {
    let codes = affine_block(x, &Q5, &mut block[..16]);
    for i in 0..32 {
        block[16 + i] = (0..8).fold(0, |bits, sub| bits | (codes[sub * 32 + i] >> 4) << sub);
    }
    for (i, byte) in block[48..].iter_mut().enumerate() {
        let at = i / 32 * 64 + i % 32;
        *byte = codes[at] & 15 | codes[at + 32] << 4;
    }
}

/// Writes d, dmin and the packed 6-bit scales and minima (16 bytes). Returns the codes for these
/// rounded scales.
fn affine_block(x: &[f32; 256], search: &Search, head: &mut [u8]) -> [u8; 256] {
    let subs = x.as_chunks::<32>().0;
    let fits: [(f32, f32); 8] = std::array::from_fn(|sub| fit_affine(&subs[sub], search));
    let max_scale = fits.iter().fold(0.0f32, |max, fit| max.max(fit.0));
    let max_min = fits.iter().fold(0.0f32, |max, fit| max.max(fit.1));
    put_f16(head, 0, max_scale / 63.0);
    put_f16(head, 2, max_min / 63.0);
    for (sub, (scale, min)) in fits.into_iter().enumerate() {
        put_scale_min(&mut head[4..], sub, six_bits(scale, max_scale), six_bits(min, max_min));
    }
    let (d, dmin) = (super::f16(head, 0), super::f16(head, 2));
    let mut codes = [0; 256];
    for (sub, codes) in codes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = scale_min(&head[4..16], sub);
        let (scale, min) = (d * scale as f32, dmin * min as f32);
        for (code, x) in codes.iter_mut().zip(&subs[sub]) {
            // With a scale of zero every code has the same value.
            *code = if scale == 0.0 { 0 } else { nearest((x + min) / scale, 0.0, search.levels) as u8 };
        }
    }
    codes
}

fn six_bits(value: f32, max: f32) -> u8 {
    if max > 0.0 { nearest(63.0 / max * value, 0.0, 63.0) as u8 } else { 0 }
}

/// The inverse of [`scale_min`]. `scales` starts zeroed, and the calls are in rising order of
/// `sub`.
fn put_scale_min(scales: &mut [u8], sub: usize, scale: u8, min: u8) {
    if sub < 4 {
        scales[sub] = scale;
        scales[sub + 4] = min;
    } else {
        scales[sub + 4] = scale & 15 | min << 4;
        scales[sub - 4] |= scale >> 4 << 6;
        scales[sub] |= min >> 4 << 6;
    }
}

/// The scale and (negated) minimum with the least weighted squared error. Each trial rounds the
/// codes at a trial scale and then finds the best scale and minimum for these codes by least
/// squares. Later trials start from the best minimum so far. Large values weigh more: the weight is
/// rms(x) + |x|.
fn fit_affine(x: &[f32; 32], search: &Search) -> (f32, f32) {
    let rms = (x.iter().map(|x| x * x).sum::<f32>() / 32.0).sqrt();
    let weights = x.map(|x| rms + x.abs());
    let min = x.iter().copied().fold(0.0, f32::min);
    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if max <= min {
        return (0.0, -min);
    }
    let error = |scale: f32, offset: f32, codes: &[f32; 32]| -> f32 {
        (0..32).map(|i| weights[i] * (scale * codes[i] + offset - x[i]).powi(2)).sum()
    };
    let codes_at = |levels: f32, offset: f32| {
        let inverse = levels / (max - offset);
        x.map(|x| nearest(inverse * (x - offset), 0.0, search.levels))
    };

    let (mut scale, mut offset) = ((max - min) / search.levels, min);
    let mut least = error(scale, offset, &codes_at(search.levels, offset));
    let sum_w: f32 = weights.iter().sum();
    let sum_x: f32 = (0..32).map(|i| weights[i] * x[i]).sum();
    for step in 0..=search.steps {
        let codes = codes_at(search.levels + search.first + STEP * step as f32, offset);
        let (mut sum_c, mut sum_cc, mut sum_cx) = (0.0, 0.0, 0.0);
        for i in 0..32 {
            let weighted = weights[i] * codes[i];
            sum_c += weighted;
            sum_cc += weighted * codes[i];
            sum_cx += weighted * x[i];
        }
        let determinant = sum_w * sum_cc - sum_c * sum_c;
        if determinant <= 0.0 {
            continue;
        }
        let mut trial_scale = (sum_w * sum_cx - sum_x * sum_c) / determinant;
        let mut trial_offset = (sum_cc * sum_x - sum_c * sum_cx) / determinant;
        if trial_offset > 0.0 {
            // A minimum is stored as a positive number to subtract.
            (trial_scale, trial_offset) = (sum_cx / sum_cc, 0.0);
        }
        let trial = error(trial_scale, trial_offset, &codes);
        if trial < least {
            (least, scale, offset) = (trial, trial_scale, trial_offset);
        }
    }
    (scale, -offset)
}

pub fn q6_k(x: &[f32; 256], block: &mut [u8; 210]) {
    let subs = x.as_chunks::<16>().0;
    let fits: [f32; 16] = std::array::from_fn(|sub| fit_symmetric(&subs[sub]));
    let furthest = fits.iter().fold(0.0f32, |far, &scale| if scale.abs() > far.abs() { scale } else { far });
    if furthest.abs() < NEGLIGIBLE {
        return;
    }
    let inverse = -128.0 / furthest;
    put_f16(block, 208, 1.0 / inverse);
    let d = super::f16(block, 208);
    let mut codes = [0u8; 256];
    for (sub, codes) in codes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let quantized = nearest(inverse * fits[sub], -128.0, 127.0);
        block[192 + sub] = quantized as i8 as u8;
        let scale = d * quantized;
        for (code, x) in codes.iter_mut().zip(&subs[sub]) {
            *code = if scale == 0.0 { 32 } else { (nearest(x / scale, -32.0, 31.0) + 32.0) as u8 };
        }
    }
    for (i, byte) in block[..128].iter_mut().enumerate() {
        let at = i / 64 * 128 + i % 64;
        *byte = codes[at] & 15 | (codes[at + 64] & 15) << 4;
    }
    for (i, byte) in block[128..192].iter_mut().enumerate() {
        let at = i / 32 * 128 + i % 32;
        *byte = (0..4).fold(0, |bits, quarter| bits | (codes[at + 32 * quarter] >> 4) << (2 * quarter));
    }
}

/// Magnitudes below this count as zero (ggml's `GROUP_MAX_EPS`).
const NEGLIGIBLE: f32 = 1e-15;

/// The scale for 6-bit symmetric codes with the least squared error, weighted by x^2. The search
/// makes 19 trials around the scale that puts the value furthest from zero on the lowest code.
/// Returns zero if all values are negligible.
fn fit_symmetric(x: &[f32; 16]) -> f32 {
    let furthest = x.iter().fold(0.0f32, |far, &x| if x.abs() > far.abs() { x } else { far });
    if furthest.abs() < NEGLIGIBLE {
        return 0.0;
    }
    let sums = |step: i32| {
        let inverse = -(32.0 + STEP * step as f32) / furthest;
        x.iter().fold((0.0f32, 0.0f32), |(cx, cc), &x| {
            let code = nearest(inverse * x, -32.0, 31.0);
            (cx + x * x * x * code, cc + x * x * code * code)
        })
    };
    let (cx, cc) = sums(0);
    let mut scale = if cc > 0.0 { cx / cc } else { 0.0 };
    let mut best = scale * cx;
    for step in (-9..=9).filter(|&step| step != 0) {
        let (cx, cc) = sums(step);
        if cc > 0.0 && cx * cx > best * cc {
            scale = cx / cc;
            best = scale * cx;
        }
    }
    scale
}

/// Rounds half to even, as ggml's `nearest_int`, and clamps.
fn nearest(x: f32, min: f32, max: f32) -> f32 {
    x.round_ties_even().clamp(min, max)
}
