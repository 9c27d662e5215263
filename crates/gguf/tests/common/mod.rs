//! Builds the bytes of valid and invalid files by hand.

#![allow(dead_code)]

/// A growing file. Every method appends to it and returns it.
#[derive(Clone, Default)]
pub struct Raw(pub Vec<u8>);

impl Raw {
    /// Magic, version and 64-bit counts.
    pub fn header(version: u32, tensors: u64, keys: u64) -> Self {
        Raw(b"GGUF".to_vec()).u32(version).u64(tensors).u64(keys)
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn string(self, bytes: &[u8]) -> Self {
        self.u64(bytes.len() as u64).bytes(bytes)
    }

    /// A key and the number of its value's type; the value follows.
    pub fn key(self, key: &str, ty: u32) -> Self {
        self.string(key.as_bytes()).u32(ty)
    }

    /// A tensor info.
    pub fn tensor(self, name: &[u8], dims: &[u64], ty: u32, offset: u64) -> Self {
        let raw = self.string(name).u32(dims.len() as u32);
        dims.iter().fold(raw, |raw, &dim| raw.u64(dim)).u32(ty).u64(offset)
    }

    /// Zeros up to a multiple of 32, then `data` more.
    pub fn data(mut self, data: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(32) + data, 0);
        self
    }
}
