//! Plain numbers: one element after another.

/// Decodes every element of `SIZE` bytes.
pub fn each<const SIZE: usize>(bytes: &[u8], out: &mut [f32], decode: impl Fn([u8; SIZE]) -> f32) {
    for (bytes, out) in bytes.as_chunks().0.iter().zip(out) {
        *out = decode(*bytes);
    }
}
