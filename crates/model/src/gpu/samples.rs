//! A digest of long data that reads little of it.

use sha2::{Digest, Sha256};

/// Bytes of each of three samples of data: at its start, its middle and its end.
const SAMPLE_BYTES: u64 = 256;

/// The offsets of the samples of `len` bytes, and the bytes of each.
pub(crate) fn places(len: u64) -> ([u64; 3], u64) {
    let last = len.saturating_sub(SAMPLE_BYTES);
    ([0, last / 2, last], len.min(SAMPLE_BYTES))
}

/// Hashes three samples of `len` bytes: at the start, in the middle, at the end.
pub(crate) fn sample<E>(hash: &mut Sha256, len: u64, read: impl Fn(u64, &mut [u8]) -> Result<(), E>) -> Result<(), E> {
    let (offsets, each) = places(len);
    let mut bytes = vec![0; each as usize];
    for offset in offsets {
        read(offset, &mut bytes)?;
        hash.update(&bytes);
    }
    Ok(())
}
