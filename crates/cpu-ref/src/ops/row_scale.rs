//! The power of two that brings a row into the range of f16.

/// `scales[t]` = 2^e with 2^13 <= max_d |x[t, d]| / 2^e < 2^14, or 1 for a row whose magnitudes are below 7.9e-31. `x [T, dim]`.
pub fn row_scale(x: &[f32], dim: usize, scales: &mut [f32]) {
    crate::check::len("row_scale: x", x.len(), scales.len() * dim);
    for (x, scale) in x.chunks_exact(dim).zip(scales) {
        let largest = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        *scale = if largest < 7.9e-31 { 1.0 } else { f32::from_bits(((largest.to_bits() >> 23) - 13) << 23) };
    }
}

#[cfg(test)]
mod tests {
    use super::row_scale;

    #[test]
    fn the_largest_magnitude_lands_in_its_octave() {
        let mut scales = [0.0; 4];
        row_scale(&[1.0, -3e7, 1e-20, 1e-21, 16383.9, 0.0, 0.0, 0.0], 2, &mut scales);
        for (scale, largest) in scales.iter().zip([3e7_f32, 1e-20, 16383.9]) {
            assert!((8192.0..16384.0).contains(&(largest / scale)), "{largest} / {scale}");
        }
        assert_eq!(scales[3], 1.0);
    }
}
