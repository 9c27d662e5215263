//! Plain numbers: one element after another.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// Decodes every element of `SIZE` bytes.
pub fn each<const SIZE: usize>(bytes: &[u8], out: &mut [f32], decode: impl Fn([u8; SIZE]) -> f32) {
    for (bytes, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = decode(*bytes);
    }
}

/// Decodes f16 in batches, so that the processor's conversion instructions take several values at
/// once.
pub fn f16s(bytes: &[u8], out: &mut [f32]) {
    let mut batch = [f16::ZERO; 64];
    for (bytes, out) in bytes.chunks(2 * batch.len()).zip(out.chunks_mut(64)) {
        for (half, bytes) in batch.iter_mut().zip(bytes.as_chunks().0) {
            *half = f16::from_le_bytes(*bytes);
        }
        batch[..out.len()].convert_to_f32_slice(out);
    }
}
