//! Dequantization and quantization. Each family of formats has its own file; this file dispatches
//! to them.

mod fp4;
mod iq;
mod k;
mod k_quantize;
mod legacy;
mod nf4;
mod plain;
pub mod tables;
mod ternary;

use crate::{Error, Field, GgmlType, Result};

/// Dequantizes whole blocks of `ty` into f32, in the order of the file.
///
/// The values equal `quants.py` of the Python package `gguf` 0.19.0 for every type that it has; the
/// others (Q1_0, Q8_1, Q8_K) follow ggml's structs, and NF4 follows bitsandbytes. Fails if `bytes`
/// is not a whole number of blocks or if the length of `out` is not their number of elements.
pub fn dequantize(ty: GgmlType, bytes: &[u8], out: &mut [f32]) -> Result<()> {
    let whole = bytes.len().is_multiple_of(ty.block_bytes());
    if !whole || (bytes.len() / ty.block_bytes()).checked_mul(ty.block_size()) != Some(out.len()) {
        return Err(Error::BlockCount { ty, bytes: bytes.len(), elements: out.len() });
    }
    use GgmlType::*;
    match ty {
        F32 => plain::each(bytes, out, f32::from_le_bytes),
        F16 => plain::f16s(bytes, out),
        BF16 => plain::each(bytes, out, |b| half::bf16::from_le_bytes(b).to_f32()),
        F64 => plain::each(bytes, out, |b| f64::from_le_bytes(b) as f32),
        I8 => plain::each(bytes, out, |b| i8::from_le_bytes(b) as f32),
        I16 => plain::each(bytes, out, |b| i16::from_le_bytes(b) as f32),
        I32 => plain::each(bytes, out, |b| i32::from_le_bytes(b) as f32),
        I64 => plain::each(bytes, out, |b| i64::from_le_bytes(b) as f32),
        Q1_0 => blocks(bytes, out, legacy::q1_0),
        Q4_0 => blocks(bytes, out, legacy::q4_0),
        Q4_1 => blocks(bytes, out, legacy::q4_1),
        Q5_0 => blocks(bytes, out, legacy::q5_0),
        Q5_1 => blocks(bytes, out, legacy::q5_1),
        Q8_0 => blocks(bytes, out, legacy::q8_0),
        Q8_1 => blocks(bytes, out, legacy::q8_1),
        Q2_K => blocks(bytes, out, k::q2_k),
        Q3_K => blocks(bytes, out, k::q3_k),
        Q4_K => blocks(bytes, out, k::q4_k),
        Q5_K => blocks(bytes, out, k::q5_k),
        Q6_K => blocks(bytes, out, k::q6_k),
        Q8_K => blocks(bytes, out, k::q8_k),
        IQ1_S => blocks(bytes, out, iq::iq1_s),
        IQ1_M => blocks(bytes, out, iq::iq1_m),
        IQ2_XXS => blocks(bytes, out, iq::iq2_xxs),
        IQ2_XS => blocks(bytes, out, iq::iq2_xs),
        IQ2_S => blocks(bytes, out, iq::iq2_s),
        IQ3_XXS => blocks(bytes, out, iq::iq3_xxs),
        IQ3_S => blocks(bytes, out, iq::iq3_s),
        IQ4_NL => blocks(bytes, out, iq::iq4_nl),
        IQ4_XS => blocks(bytes, out, iq::iq4_xs),
        TQ1_0 => blocks(bytes, out, ternary::tq1_0),
        TQ2_0 => blocks(bytes, out, ternary::tq2_0),
        MXFP4 => blocks(bytes, out, fp4::mxfp4),
        NVFP4 => blocks(bytes, out, fp4::nvfp4),
        NF4 => blocks(bytes, out, nf4::nf4),
        NF4_DQ => blocks(bytes, out, nf4::nf4_dq),
    }
    Ok(())
}

/// The types that [`quantize`] writes.
pub const WRITTEN: [GgmlType; 11] = {
    use GgmlType::*;
    [F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K]
};

/// Quantizes rows of `cols` elements each to one of the types of [`WRITTEN`], with ggml's search
/// for scales; or, for use in memory, to NF4 as bitsandbytes does, or to NF4_DQ.
///
/// Fails for any other type, for a row that is not a whole number of blocks, and for a `src` that
/// is not a whole number of rows. Types with scales also fail for values that are not finite, and
/// those with f16 scales for values whose scale exceeds the range of f16 (65,504).
pub fn quantize(ty: GgmlType, src: &[f32], cols: usize) -> Result<Vec<u8>> {
    let row_bytes = ty.row_bytes(cols).ok_or(Error::RowLength { ty, cols })?;
    if cols == 0 || !src.len().is_multiple_of(cols) {
        return Err(Error::RowCount { elements: src.len(), cols });
    }
    if ty.is_quantized() {
        check_values(ty, src)?;
    }
    let mut bytes = Vec::with_capacity(src.len() / cols * row_bytes);
    use GgmlType::*;
    match ty {
        F32 => src.iter().for_each(|x| bytes.extend(x.to_le_bytes())),
        F16 => src.iter().for_each(|&x| bytes.extend(half::f16::from_f32(x).to_le_bytes())),
        BF16 => src.iter().for_each(|&x| bytes.extend(half::bf16::from_f32(x).to_le_bytes())),
        Q4_0 => encode(src, &mut bytes, legacy::quantize_q4_0),
        Q4_1 => encode(src, &mut bytes, legacy::quantize_q4_1),
        Q5_0 => encode(src, &mut bytes, legacy::quantize_q5_0),
        Q5_1 => encode(src, &mut bytes, legacy::quantize_q5_1),
        Q8_0 => encode(src, &mut bytes, legacy::quantize_q8_0),
        Q4_K => encode(src, &mut bytes, k_quantize::q4_k),
        Q5_K => encode(src, &mut bytes, k_quantize::q5_k),
        Q6_K => encode(src, &mut bytes, k_quantize::q6_k),
        NF4 => encode(src, &mut bytes, nf4::quantize_nf4),
        NF4_DQ => encode(src, &mut bytes, nf4::quantize_nf4_dq),
        _ => return Err(Error::NoQuantizer { ty }),
    }
    check_scales(ty, &bytes)?;
    Ok(bytes)
}

/// No format can reach this magnitude with an f16 scale. Below it the sums of the searches stay
/// finite.
const LARGEST: f32 = 1e9;

fn check_values(ty: GgmlType, src: &[f32]) -> Result<()> {
    let largest = if half_scales(ty).next().is_some() { LARGEST } else { f32::MAX };
    match src.iter().position(|x| x.is_nan() || x.abs() > largest) {
        Some(index) if src[index].is_finite() => Err(Error::ScaleRange { ty, index: index - index % ty.block_size() }),
        Some(index) => Err(Error::NotFinite { index, value: src[index] }),
        None => Ok(()),
    }
}

/// Fails if the f16 scale or minimum of a block is infinite.
fn check_scales(ty: GgmlType, bytes: &[u8]) -> Result<()> {
    let lost = |block: &[u8]| half_scales(ty).any(|field| !f16(block, field.offset_bytes).is_finite());
    match bytes.chunks_exact(ty.block_bytes()).position(lost) {
        Some(block) => Err(Error::ScaleRange { ty, index: block * ty.block_size() }),
        None => Ok(()),
    }
}

/// The scales and minimums of a block that are f16.
fn half_scales(ty: GgmlType) -> impl Iterator<Item = &'static Field> {
    ty.fields().iter().filter(|field| field.bytes == 2 && matches!(field.name, "d" | "m" | "dmin"))
}

fn blocks<const B: usize, const N: usize>(bytes: &[u8], out: &mut [f32], decode: impl Fn(&[u8; B], &mut [f32; N])) {
    debug_assert_eq!(bytes.len() / B * N, out.len());
    for (block, out) in bytes.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        decode(block, out);
    }
}

fn encode<const B: usize, const N: usize>(src: &[f32], bytes: &mut Vec<u8>, encode: impl Fn(&[f32; N], &mut [u8; B])) {
    for values in src.as_chunks().0 {
        let mut block = [0; B];
        encode(values, &mut block);
        bytes.extend(block);
    }
}

/// The f16 at byte `at` of a block.
fn f16(block: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn u16(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

fn u32(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// The `i`-th nibble, the low half of a byte first.
fn nibble(bytes: &[u8], i: usize) -> u8 {
    (bytes[i / 2] >> (4 * (i % 2))) & 15
}
