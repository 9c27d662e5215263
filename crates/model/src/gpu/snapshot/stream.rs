//! Hashes bytes while they are read or written. A checksum is the SHA-256 of all bytes before it.

use super::error::SnapshotError;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};

/// A reader or writer with the hash of all bytes so far.
pub(super) struct Hashed<T> {
    inner: T,
    hash: Sha256,
}

impl<T> Hashed<T> {
    pub fn new(inner: T) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    fn sum(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }
}

impl<W: Write> Hashed<W> {
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.hash.update(bytes);
        self.inner.write_all(bytes).map_err(|error| SnapshotError::Write { error })
    }

    /// Writes the checksum of everything so far.
    pub fn seal(&mut self) -> Result<(), SnapshotError> {
        self.put(&self.sum())?;
        self.inner.flush().map_err(|error| SnapshotError::Write { error })
    }
}

impl<R: Read> Hashed<R> {
    /// Reads `needed` bytes. Memory grows with the bytes that arrive, not with the stated length.
    pub fn take(&mut self, part: &'static str, needed: u64) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = vec![];
        let mut limited = self.inner.by_ref().take(needed);
        let found = limited.read_to_end(&mut bytes).map_err(|error| SnapshotError::Read { error })? as u64;
        if found < needed {
            return Err(SnapshotError::Truncated { part, needed, found });
        }
        self.hash.update(&bytes);
        Ok(bytes)
    }

    /// Reads the bytes that every snapshot begins with.
    pub fn magic(&mut self, known: &[u8]) -> Result<(), SnapshotError> {
        let mut bytes = vec![];
        self.inner
            .by_ref()
            .take(known.len() as u64)
            .read_to_end(&mut bytes)
            .map_err(|error| SnapshotError::Read { error })?;
        self.hash.update(&bytes);
        match known.strip_prefix(&bytes[..]) {
            None => Err(SnapshotError::Magic),
            Some([]) => Ok(()),
            Some(_) => {
                Err(SnapshotError::Truncated { part: "magic", needed: known.len() as u64, found: bytes.len() as u64 })
            }
        }
    }

    pub fn u32(&mut self, part: &'static str) -> Result<u32, SnapshotError> {
        let bytes = self.take(part, 4)?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    /// Reads a checksum and compares it with the hash of everything so far.
    pub fn check(&mut self, part: &'static str) -> Result<(), SnapshotError> {
        let expected = self.sum();
        if self.take("checksum", 32)? == expected { Ok(()) } else { Err(SnapshotError::Checksum { part }) }
    }
}
