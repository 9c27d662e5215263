//! The quantizers give the same bytes as llama.cpp for the same weights, and keep error bounds on a
//! Gaussian vector.

use std::path::Path;

use gguf::{Error, GgmlType, dequantize, quantize};

const QUANTIZED: [GgmlType; 8] = [
    GgmlType::Q4_0,
    GgmlType::Q4_1,
    GgmlType::Q5_0,
    GgmlType::Q5_1,
    GgmlType::Q8_0,
    GgmlType::Q4_K,
    GgmlType::Q5_K,
    GgmlType::Q6_K,
];

fn vector(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/quantized").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Relative root-mean-square error after a round trip.
fn relative_rmse(ty: GgmlType, values: &[f32]) -> f64 {
    let mut back = vec![0.0; values.len()];
    dequantize(ty, &quantize(ty, values, values.len()).unwrap(), &mut back).unwrap();
    let squares: f64 = values.iter().zip(&back).map(|(a, b)| (*a as f64 - *b as f64).powi(2)).sum();
    let power: f64 = values.iter().map(|a| (*a as f64).powi(2)).sum();
    (squares / power).sqrt()
}

/// Standard normal values by Box and Muller over a fixed 64-bit linear congruential sequence.
fn gaussian(count: usize) -> Vec<f32> {
    let mut state = 42u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    (0..count).map(|_| ((-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()) as f32).collect()
}

/// `weights.f16` is the start of a tensor of a random test model; each `TYPE.bin` is the start of
/// the same tensor as llama.cpp 0.5.0-dev's `llama-quantize` wrote it without an importance matrix.
#[test]
fn quantizers_write_the_bytes_of_llama_cpp() {
    let weights = vector("weights.f16");
    let mut values = vec![0.0; weights.len() / 2];
    dequantize(GgmlType::F16, &weights, &mut values).unwrap();
    assert_eq!(quantize(GgmlType::F16, &values, values.len()).unwrap(), weights);
    for ty in QUANTIZED.into_iter().chain([GgmlType::BF16]) {
        let expected = vector(&format!("{ty}.bin"));
        let bytes = quantize(ty, &values, values.len() / 2).unwrap();
        assert_eq!(bytes.len(), expected.len(), "{ty}");
        assert_eq!(bytes.iter().zip(&expected).position(|(a, b)| a != b), None, "{ty}");
    }
}

/// The bounds are the measured errors of these quantizers, rounded up in the fourth digit. When
/// they were measured, the bytes equalled llama.cpp's for all 501 tensors of 18 files of seven test
/// models (`examples/quant_error.rs`).
#[test]
fn errors_on_a_gaussian_vector_stay_at_those_of_llama_cpp() {
    let values = gaussian(1 << 16);
    for (ty, bound) in QUANTIZED.into_iter().zip(BOUNDS) {
        let error = relative_rmse(ty, &values);
        assert!(error <= bound && error > bound * 0.999, "{ty}: {error:e}, bound {bound:e}");
    }
}

const BOUNDS: [f64; 8] = [8.620e-2, 7.821e-2, 4.253e-2, 3.778e-2, 5.349e-3, 7.129e-2, 3.604e-2, 1.778e-2];

#[test]
fn zeros_constants_and_tiny_values_survive_every_quantizer() {
    for ty in QUANTIZED {
        for value in [0.0, -0.0, 1e-30, -1e-30, f32::MIN_POSITIVE / 4.0] {
            let values = [value; 256];
            let mut back = [f32::NAN; 256];
            dequantize(ty, &quantize(ty, &values, 256).unwrap(), &mut back).unwrap();
            assert!(back.iter().all(|x| x.abs() < 1e-7), "{ty} {value:e}: {}", back[0]);
        }
        for value in [3.0f32, -3.0] {
            let error = relative_rmse(ty, &[value; 256]);
            assert!(error < 2e-3, "{ty} {value}: {error:e}");
        }
    }
}

#[test]
fn bf16_rounds_to_even_and_keeps_nan() {
    let values = [1.0, f32::from_bits(0x3f80_8000), f32::from_bits(0x3f81_8000), f32::INFINITY, -0.0];
    let bytes = quantize(GgmlType::BF16, &values, 5).unwrap();
    let words: Vec<u16> = bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
    assert_eq!(words, [0x3f80, 0x3f80, 0x3f82, 0x7f80, 0x8000]);
    let nan = quantize(GgmlType::BF16, &[f32::from_bits(0x7f80_0001)], 1).unwrap();
    assert!(f32::from_bits((u16::from_le_bytes([nan[0], nan[1]]) as u32) << 16).is_nan());
}

#[test]
fn values_that_no_scale_holds_are_refused_by_index() {
    for ty in QUANTIZED {
        let mut values = vec![1.0f32; 512];
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            values[300] = bad;
            assert!(matches!(quantize(ty, &values, 256), Err(Error::NotFinite { index: 300, .. })), "{ty} {bad}");
        }
        let first = 300 / ty.block_size() * ty.block_size();
        for large in [3e38, -1e9, 9.9e8] {
            values[300] = large;
            assert!(
                matches!(quantize(ty, &values, 256), Err(Error::ScaleRange { index, .. }) if index == first),
                "{ty} {large}"
            );
        }
    }
}

#[test]
fn partial_rows_and_types_without_quantizer_are_refused() {
    assert!(matches!(quantize(GgmlType::Q4_K, &[0.0; 512], 128), Err(Error::RowLength { cols: 128, .. })));
    assert!(matches!(quantize(GgmlType::Q8_0, &[0.0; 48], 32), Err(Error::RowCount { elements: 48, cols: 32 })));
    assert!(matches!(quantize(GgmlType::F32, &[], 0), Err(Error::RowCount { .. })));
    for &ty in GgmlType::ALL {
        assert_eq!(quantize(ty, &[0.0; 256], 256).is_ok(), gguf::quants::WRITTEN.contains(&ty), "{ty}");
    }
    assert!(matches!(quantize(GgmlType::IQ3_S, &[0.0; 256], 256), Err(Error::NoQuantizer { .. })));
}
