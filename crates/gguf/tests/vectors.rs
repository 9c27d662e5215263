//! The values of every type equal the values of the Python package `gguf` 0.19.0 (see
//! `vectors/make.py`) to the last bit.

use std::path::Path;

use gguf::{GgmlType, dequantize};

#[test]
fn every_type_dequantizes_to_the_bits_of_the_python_package() {
    for &ty in GgmlType::ALL {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/vectors/{ty}.bin"));
        let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // b blocks and their elements: b * (block bytes + 4 * block size) in all.
        let blocks = file.len() / (ty.block_bytes() + 4 * ty.block_size());
        let (bytes, expected) = file.split_at(blocks * ty.block_bytes());
        let mut values = vec![f32::NAN; blocks * ty.block_size()];
        dequantize(ty, bytes, &mut values).unwrap();
        assert!(blocks >= 6 && expected.len() == 4 * values.len(), "{ty}");
        for (i, (value, expected)) in values.iter().zip(expected.as_chunks().0).enumerate() {
            let expected = f32::from_le_bytes(*expected);
            assert_eq!(value.to_bits(), expected.to_bits(), "{ty} element {i}: {value} instead of {expected}");
        }
    }
}

#[test]
fn partial_blocks_and_wrong_element_counts_are_refused() {
    for &ty in GgmlType::ALL {
        let (bytes, mut out) = (vec![0; 2 * ty.block_bytes()], vec![0.0; 2 * ty.block_size()]);
        assert!(dequantize(ty, &bytes, &mut out).is_ok(), "{ty}");
        assert!(dequantize(ty, &bytes, &mut out[1..]).is_err(), "{ty}");
        assert!(dequantize(ty, &bytes[ty.block_bytes()..], &mut out).is_err(), "{ty}");
        if ty.block_bytes() > 1 {
            assert!(dequantize(ty, &bytes[1..], &mut out).is_err(), "{ty}");
        }
    }
}
