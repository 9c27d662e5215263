//! NF4: the codebook and its bounds, the blocks that bitsandbytes makes, and the writer's refusal.

use gguf::quants::tables::NF4_VALUES;
use gguf::{Error, GgmlType, GgufBuilder, dequantize, quantize};

const BLOCK: usize = 64;

/// The largest error of a nearest code, as a share of the absmax: half of the widest gap, between
/// the first two codes.
const LARGEST_ERROR: f32 = 0.152;

fn blocks(values: &[f32]) -> Vec<u8> {
    quantize(GgmlType::NF4, values, values.len()).expect("finite values")
}

/// The codes of a block, in the order of its elements.
fn codes(block: &[u8]) -> Vec<u8> {
    block[4..].iter().flat_map(|byte| [byte & 15, byte >> 4]).collect()
}

fn back(blocks: &[u8]) -> Vec<f32> {
    let mut values = vec![f32::NAN; blocks.len() / 36 * BLOCK];
    dequantize(GgmlType::NF4, blocks, &mut values).expect("whole blocks");
    values
}

/// A block that starts with an absmax, followed by these values and zeros.
fn block_of(absmax: f32, values: &[f32]) -> Vec<u8> {
    let mut all = vec![0.0; BLOCK];
    all[0] = absmax;
    all[1..=values.len()].copy_from_slice(values);
    blocks(&all)
}

/// Values between -1 and 1 that repeat nowhere.
fn uniform(count: usize) -> Vec<f32> {
    (0..count).map(|i| (1e3 * (i as f64 * 0.7391).sin()).sin() as f32).collect()
}

/// The scale of 64 elements is off by half of 1/255 of the largest of four, and the codes of an
/// element by what NF4 allows.
#[test]
fn scales_that_are_quantized_again_cost_half_a_step() {
    let sizes = [1.0, 0.37, 0.004, 0.0];
    let values: Vec<f32> = uniform(512).iter().enumerate().map(|(i, value)| sizes[i / 64 % 4] * value).collect();
    let (bytes, mut back) = (quantize(GgmlType::NF4_DQ, &values, 256).expect("finite values"), vec![f32::NAN; 512]);
    assert_eq!(bytes.len(), 2 * 136);
    dequantize(GgmlType::NF4_DQ, &bytes, &mut back).expect("whole blocks");
    for (n, (values, back)) in values.chunks(64).zip(back.chunks(64)).enumerate() {
        let absmax = |values: &[f32]| values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        let (block, most) = (&bytes[136 * (n / 4)..][..136], absmax(&uniform(512)[256 * (n / 4)..][..64]));
        let (d, scale) = (f32::from_le_bytes(block[..4].try_into().expect("four bytes")), f32::from(block[4 + n % 4]));
        assert!((d * 255.0 - most).abs() < 1e-6 && (scale * d - absmax(values)).abs() <= 0.501 * d, "{n}: {d} {scale}");
        // Beyond the scale there is no code: half a step more.
        let largest = values.iter().zip(back).fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
        assert!(largest <= LARGEST_ERROR * scale * d + 0.501 * d, "{n}: {largest}");
        assert!(back.iter().all(|value| scale > 0.0 || *value == 0.0), "{n}");
    }
    // Where four blocks have one magnitude, the codes are those of NF4.
    let alike: Vec<f32> = (0..256).map(|i| if i % 64 == 0 { 1.0 } else { uniform(256)[i] }).collect();
    let (twice, once) = (quantize(GgmlType::NF4_DQ, &alike, 256).expect("finite"), blocks(&alike));
    let once: Vec<u8> = once.chunks(36).flat_map(|block| block[4..].to_vec()).collect();
    assert_eq!((&twice[4..8], &twice[8..]), (&[255; 4][..], &once[..]));
}

#[test]
fn the_16_codes_rise_from_minus_1_over_0_to_1() {
    assert!(NF4_VALUES.is_sorted_by(|a, b| a < b), "{NF4_VALUES:?}");
    assert_eq!([NF4_VALUES[0], NF4_VALUES[7], NF4_VALUES[15]], [-1.0, 0.0, 1.0]);
}

#[test]
fn every_code_comes_back_and_every_threshold_parts_two_codes() {
    for absmax in [1.0, 0.25, 1024.0] {
        let block = block_of(absmax, &NF4_VALUES.map(|value| value * absmax));
        assert_eq!(codes(&block)[1..17], (0..16).collect::<Vec<u8>>(), "{absmax}");
        assert_eq!(back(&block)[1..17], NF4_VALUES.map(|value| value * absmax), "{absmax}");
        for (lower, pair) in NF4_VALUES.windows(2).enumerate() {
            let half_way = (pair[0] + pair[1]) / 2.0 * absmax;
            let found = codes(&block_of(absmax, &[half_way.next_down(), half_way, half_way.next_up()]));
            assert_eq!(found[1..4], [lower as u8, lower as u8, lower as u8 + 1], "half way at {half_way} of {absmax}");
        }
    }
}

#[test]
fn the_error_is_at_most_half_of_the_widest_gap() {
    let random = uniform(256 * BLOCK);
    let scaled: Vec<f32> =
        random.iter().enumerate().map(|(i, v)| v * 10.0f32.powi((i / BLOCK) as i32 % 60 - 30)).collect();
    for values in [random, scaled, vec![0.0; BLOCK], vec![-0.0; BLOCK], vec![f32::MAX; BLOCK], vec![-3.5; BLOCK]] {
        for (block, values) in values.chunks_exact(BLOCK).enumerate() {
            let absmax = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            for (value, back) in values.iter().zip(back(&blocks(values))) {
                assert!(
                    (value - back).abs() <= LARGEST_ERROR * absmax,
                    "block {block}: {back} for {value} of {absmax}"
                );
            }
        }
    }
}

/// `nf4.bin` has values and what bitsandbytes 0.50.2 makes of them (`vectors/nf4.py`): random
/// blocks, every threshold with its neighbours, zeros, subnormal and large values.
#[test]
fn blocks_are_those_of_bitsandbytes() {
    let file = include_bytes!("vectors/nf4.bin");
    let count = file.len() / (BLOCK * 4 + BLOCK / 2 + 4 + BLOCK * 4);
    let floats = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect::<Vec<f32>>();
    let (values, rest) = file.split_at(count * BLOCK * 4);
    let (packed, rest) = rest.split_at(count * BLOCK / 2);
    let (absmax, expected) = rest.split_at(count * 4);
    assert!(count >= 14 && expected.len() == values.len(), "{count} blocks");
    let found = blocks(&floats(values));
    for (block, (found, (packed, absmax))) in found.chunks(36).zip(packed.chunks(32).zip(absmax.chunks(4))).enumerate()
    {
        // bitsandbytes has the earlier element in the high nibble.
        let swapped: Vec<u8> = packed.iter().map(|byte| byte.rotate_left(4)).collect();
        assert_eq!((&found[..4], &found[4..]), (absmax, &swapped[..]), "block {block}");
    }
    for (i, (found, expected)) in back(&found).iter().zip(floats(expected)).enumerate() {
        assert_eq!(found.to_bits(), expected.to_bits(), "element {i}: {found} for {expected}");
    }
}

#[test]
fn values_that_are_not_finite_and_partial_blocks_are_refused() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = uniform(2 * BLOCK);
        values[70] = bad;
        assert!(matches!(quantize(GgmlType::NF4, &values, BLOCK), Err(Error::NotFinite { index: 70, .. })), "{bad}");
    }
    assert!(matches!(quantize(GgmlType::NF4, &[0.0; 96], 96), Err(Error::RowLength { cols: 96, .. })));
    assert!(dequantize(GgmlType::NF4, &[0; 35], &mut [0.0; BLOCK]).is_err());
    assert!(dequantize(GgmlType::NF4, &[0; 36], &mut [0.0; 63]).is_err());
    assert!(matches!(quantize(GgmlType::NF4_DQ, &[0.0; 64], 64), Err(Error::RowLength { cols: 64, .. })));
}

#[test]
fn the_writer_has_no_number_for_it() {
    let file = GgufBuilder::new().set("general.architecture", "qwen3");
    let error = file
        .tensor("blk.0.attn_q.weight", &[64], GgmlType::NF4, blocks(&[1.0; BLOCK]))
        .to_bytes()
        .expect_err("no number");
    assert!(matches!(error, Error::NotInFiles { .. }), "{error}");
    let expected = "tensor `blk.0.attn_q.weight` is NF4, which has no number in gguf files; write it as F16 or F32";
    assert_eq!(error.to_string(), expected);
}
