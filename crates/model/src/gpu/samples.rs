//! A digest of long data that reads little of it.

use sha2::{Digest, Sha256};

/// Bytes of each of three samples of data: at its start, its middle and its end.
const SAMPLE_BYTES: u64 = 256;

/// Hashes three samples of `len` bytes: at the start, in the middle, at the end.
pub(crate) fn sample<E>(hash: &mut Sha256, len: u64, read: impl Fn(u64, &mut [u8]) -> Result<(), E>) -> Result<(), E> {
    let (last, mut bytes) = (len.saturating_sub(SAMPLE_BYTES), vec![0; len.min(SAMPLE_BYTES) as usize]);
    for offset in [0, last / 2, last] {
        read(offset, &mut bytes)?;
        hash.update(&bytes);
    }
    Ok(())
}
