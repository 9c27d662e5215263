//! NF4: blocks that the CPU packs, as the device unpacks them.

use crate::{device, numbers, product, within};
use gguf::GgmlType;
use gguf::quants::tables::NF4_VALUES;
use kernels::run::{self, Matrix};

fn blocks(values: &[f32]) -> Vec<u8> {
    gguf::quantize(GgmlType::NF4, values, values.len()).expect("finite values")
}

/// Rows of `cols` elements in NF4, as the device reads them.
fn unpacked(bytes: &[u8], cols: usize) -> Vec<f32> {
    let rows = bytes.len() / (cols / 64 * 36);
    let ids: Vec<u32> = (0..rows as u32).collect();
    run::embed(&device(), Matrix { ty: GgmlType::NF4, rows, cols, bytes }, &ids).expect("fits")
}

#[test]
fn every_byte_that_the_cpu_packs_is_unpacked_in_the_order_of_its_elements() {
    // Byte b of eight blocks has code b % 16, then b / 16. Every block has the values -1 and 1.
    let values: Vec<f32> =
        (0..256).flat_map(|byte| [byte % 16, byte / 16]).map(|code: usize| 0.37 * NF4_VALUES[code]).collect();
    let bytes = blocks(&values);
    let codes: Vec<u8> = bytes.chunks_exact(36).flat_map(|block| &block[4..]).copied().collect();
    assert_eq!(codes, (0..=255).collect::<Vec<u8>>(), "the low half of a byte is the earlier element");
    // Whole rows, and rows whose planes end within 16 bytes.
    for cols in [512, 256, 128, 64] {
        within(&format!("rows of {cols}"), 1e-6, &unpacked(&bytes, cols), &values);
    }
}

#[test]
fn a_million_values_are_those_of_the_cpu() {
    let (rows, cols) = (1021, 17 * 64);
    let values: Vec<f32> =
        numbers(rows * cols, 1, 1.0).into_iter().zip(0..).map(|(v, i)| v * ((i / 64 % 9) as f32)).collect();
    let bytes = blocks(&values);
    let mut expected = vec![f32::NAN; values.len()];
    gguf::dequantize(GgmlType::NF4, &bytes, &mut expected).expect("whole blocks");
    let found = unpacked(&bytes, cols);
    within("1,110,848 values", 1e-6, &found, &expected);
    for (found, values) in found.chunks_exact(64).zip(values.chunks_exact(64)) {
        let absmax = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        within("a block", 0.152 * f64::from(absmax), found, values);
    }
}

#[test]
fn products_and_their_derivatives_by_the_input() {
    let on = device();
    for (rows, n, k) in [(1, 16, 64), (3, 17, 192), (33, 65, 1088)] {
        let bytes = blocks(&numbers(n * k, 5, 1.0));
        let mut w = vec![0.0; n * k];
        gguf::dequantize(GgmlType::NF4, &bytes, &mut w).expect("whole blocks");
        let (x, dy, of) = (
            numbers(rows * k, 3, 0.1),
            numbers(rows * n, 4, 1.0),
            Matrix { ty: GgmlType::NF4, rows: n, cols: k, bytes: &bytes },
        );
        let y = run::matmul(&on, &x, of).expect("fits");
        within(
            &format!("{rows} rows of {k}"),
            1e-5,
            &y,
            &product([rows, n, k], |i, l| x[i * k + l], |l, j| w[j * k + l]),
        );
        let dx = run::matmul_input(&on, &dy, of).expect("fits");
        within(
            &format!("{rows} rows of {n}"),
            1e-5,
            &dx,
            &product([rows, k, n], |i, j| dy[i * n + j], |j, l| w[j * k + l]),
        );
    }
}
