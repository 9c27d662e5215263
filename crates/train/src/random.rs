//! Random numbers that depend on a seed, the name of a tensor and the index of an element only.

use kernels::cpu_ref::threefry2x32;

/// The two words for an element of a tensor.
fn words(seed: u64, tensor: &str, element: u32) -> [u32; 2] {
    // FNV-1a, so that a tensor's numbers do not depend on the other tensors.
    let name = tensor.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    threefry2x32([seed as u32, (seed >> 32) as u32], [name, element])
}

/// The two words that decide about dropout in the n-th part of a step of a run.
pub fn key(seed: u64, step: u64, n: u32) -> [u32; 2] {
    let [low, high] = threefry2x32([seed as u32, (seed >> 32) as u32], [step as u32, (step >> 32) as u32]);
    threefry2x32([low, high], [n, 0])
}

/// A number between 0 and 1, never either.
fn unit(word: u32) -> f64 {
    (f64::from(word) + 0.5) / f64::from(1u32 << 31) / 2.0
}

/// A number between -1 and 1, uniformly distributed.
pub fn uniform(seed: u64, tensor: &str, element: u32) -> f64 {
    2.0 * unit(words(seed, tensor, element)[0]) - 1.0
}

/// A number of the standard normal distribution (Box & Muller 1958).
pub fn normal(seed: u64, tensor: &str, element: u32) -> f64 {
    let [radius, angle] = words(seed, tensor, element).map(unit);
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_distributions() {
        let moments = |draw: &dyn Fn(u32) -> f64| {
            let values: Vec<f64> = (0..4096).map(draw).collect();
            let mean = values.iter().sum::<f64>() / 4096.0;
            (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 4096.0)
        };
        let (mean, variance) = moments(&|i| normal(3, "a", i));
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.07, "{mean} {variance}");
        let (mean, variance) = moments(&|i| uniform(3, "a", i));
        assert!(mean.abs() < 0.03 && (variance - 1.0 / 3.0).abs() < 0.02, "{mean} {variance}");
        assert_ne!(normal(3, "a", 0), normal(3, "b", 0));
        assert_ne!(normal(3, "a", 0), normal(4, "a", 0));
    }
}
