//! Hyper-parameters from a file's metadata, checked before anything believes them.

use crate::error::Error;
use gguf::Gguf;
use std::ops::RangeInclusive;

/// Reads the keys of one architecture: `embedding_length` is `qwen3.embedding_length` in the file.
pub(crate) struct Meta<'a> {
    pub file: &'a Gguf,
    pub architecture: &'static str,
}

/// Experts that a layer can have.
pub(crate) const EXPERTS: RangeInclusive<u32> = 1..=kernels::ops::route::MAX_EXPERTS;
/// Largest lengths that any published model comes near; beyond them a file is broken.
pub(crate) const LENGTHS: RangeInclusive<u32> = 1..=1 << 20;

impl Meta<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// A whole number within `range`.
    pub fn count(&self, key: &str, range: RangeInclusive<u32>) -> Result<u32, Error> {
        let key = self.key(key);
        let found: u64 = self.file.get(&key)?;
        within(key, found, range)
    }

    /// A whole number within `range`, or `default` where the file has none.
    pub fn count_or(&self, key: &str, range: RangeInclusive<u32>, default: u32) -> Result<u32, Error> {
        let key = self.key(key);
        self.file.get_opt::<u64>(&key)?.map_or(Ok(default), |found| within(key, found, range))
    }

    /// Yes or no, or `default` where the file says neither.
    pub fn flag_or(&self, key: &str, default: bool) -> Result<bool, Error> {
        Ok(self.file.get_opt(&self.key(key))?.unwrap_or(default))
    }

    /// A finite number above zero.
    pub fn positive(&self, key: &str) -> Result<f32, Error> {
        let key = self.key(key);
        let found: f32 = self.file.get(&key)?;
        positive(key, found)
    }

    /// A finite number above zero, or `default` where the file has none.
    pub fn positive_or(&self, key: &str, default: f32) -> Result<f32, Error> {
        let key = self.key(key);
        self.file.get_opt::<f32>(&key)?.map_or(Ok(default), |found| positive(key, found))
    }

    /// The factor on every rope frequency: 1, or the inverse of the factor of linear scaling.
    pub fn rope_scale(&self) -> Result<f64, Error> {
        match self.file.get_opt::<&str>(&self.key("rope.scaling.type"))? {
            None | Some("none") => Ok(1.0),
            Some("linear") => Ok(1.0 / f64::from(self.positive("rope.scaling.factor")?)),
            Some(name) => Err(Error::RopeScaling { name: name.to_string() }),
        }
    }

    /// Rotated elements per head: its own key, or the whole head; even.
    pub fn rope_dim(&self, head_dim: u32) -> Result<u32, Error> {
        let dim = self.count_or("rope.dimension_count", 2..=head_dim, head_dim)?;
        if dim.is_multiple_of(2) {
            return Ok(dim);
        }
        Err(Error::Parameter { key: self.key("rope.dimension_count"), expected: "even".to_string(), found: dim.to_string() })
    }

    /// (query heads, kv heads), the one a multiple of the other.
    pub fn heads(&self) -> Result<(u32, u32), Error> {
        let heads = self.count("attention.head_count", 1..=1024)?;
        let kv = self.count_or("attention.head_count_kv", 1..=1024, heads)?;
        if heads.is_multiple_of(kv) {
            return Ok((heads, kv));
        }
        let expected = format!("a divisor of {heads} query heads");
        Err(Error::Parameter { key: self.key("attention.head_count_kv"), expected, found: kv.to_string() })
    }

    /// Elements per head: its own key, or the embedding shared among the heads; the same for keys and values.
    pub fn head_dim(&self, embedding_length: u32, heads: u32) -> Result<u32, Error> {
        let dims = 4..=kernels::ops::attention::MAX_HEAD_DIM;
        let dim = self.count_or("attention.key_length", dims.clone(), embedding_length / heads)?;
        let value = self.count_or("attention.value_length", dims.clone(), dim)?;
        if dims.contains(&dim) && dim.is_multiple_of(4) && dim == value {
            return Ok(dim);
        }
        let expected = format!("a multiple of 4 within {dims:?}, for keys and values alike");
        Err(Error::Parameter { key: self.key("attention.key_length"), expected, found: format!("{dim} and {value}") })
    }
}

fn within(key: String, found: u64, range: RangeInclusive<u32>) -> Result<u32, Error> {
    match u32::try_from(found).ok().filter(|n| range.contains(n)) {
        Some(n) => Ok(n),
        None => Err(Error::Parameter { key, expected: format!("within {} to {}", range.start(), range.end()), found: found.to_string() }),
    }
}

fn positive(key: String, found: f32) -> Result<f32, Error> {
    if found.is_finite() && found > 0.0 {
        return Ok(found);
    }
    Err(Error::Parameter { key, expected: "a finite number above zero".to_string(), found: found.to_string() })
}
