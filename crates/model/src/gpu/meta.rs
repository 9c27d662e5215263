//! Hyper-parameters from a file's metadata, with range checks.

use crate::error::Error;
use gguf::{Array, Gguf, Value};
use std::ops::RangeInclusive;

/// Reads the keys of one architecture: `embedding_length` stands for `qwen3.embedding_length` in
/// the file.
pub(crate) struct Meta<'a> {
    pub file: &'a Gguf,
    pub architecture: &'static str,
}

/// Allowed numbers of experts per layer.
pub(crate) const EXPERTS: RangeInclusive<u32> = 1..=kernels::ops::MAX_EXPERTS;
/// Allowed context lengths.
pub(crate) const CONTEXTS: RangeInclusive<u32> = 1..=1 << 24;
/// Allowed lengths. No published model comes near the upper limit, so a file beyond it is broken.
pub(crate) const LENGTHS: RangeInclusive<u32> = 1..=1 << 20;

impl Meta<'_> {
    pub fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// A whole number within `range`.
    pub fn count(&self, key: &str, range: RangeInclusive<u32>) -> Result<u32, Error> {
        let key = self.key(key);
        let found: u64 = self.file.get(&key)?;
        within(key, found, range)
    }

    /// A whole number within `range`, or `default` if the file has none.
    pub fn count_or(&self, key: &str, range: RangeInclusive<u32>, default: u32) -> Result<u32, Error> {
        let key = self.key(key);
        self.file.get_opt::<u64>(&key)?.map_or(Ok(default), |found| within(key, found, range))
    }

    /// A length, or the rows of a tensor: Ollama's files and old files lack lengths of experts.
    pub fn length_or_rows(&self, key: &str, tensor: &str) -> Result<u32, Error> {
        let rows = self.file.find_tensor(tensor).and_then(|tensor| u32::try_from(*tensor.shape().get(1)?).ok());
        match rows.filter(|rows| LENGTHS.contains(rows)) {
            Some(rows) => self.count_or(key, LENGTHS, rows),
            None => self.count(key, LENGTHS),
        }
    }

    /// A boolean, or `default` if the file has none.
    pub fn flag_or(&self, key: &str, default: bool) -> Result<bool, Error> {
        Ok(self.file.get_opt(&self.key(key))?.unwrap_or(default))
    }

    /// A finite number above zero.
    pub fn positive(&self, key: &str) -> Result<f32, Error> {
        let key = self.key(key);
        let found: f32 = self.file.get(&key)?;
        positive(key, found)
    }

    /// A finite number above zero, or `default` if the file has none.
    pub fn positive_or(&self, key: &str, default: f32) -> Result<f32, Error> {
        Ok(self.optional_positive(key)?.unwrap_or(default))
    }

    /// A finite number above zero; `None` if the file has none.
    pub fn optional_positive(&self, key: &str) -> Result<Option<f32>, Error> {
        let key = self.key(key);
        self.file.get_opt::<f32>(&key)?.map(|found| positive(key, found)).transpose()
    }

    /// A whole number within `range` per layer. The file has one for all layers or an array.
    pub fn per_layer(&self, key: &str, range: RangeInclusive<u32>, layers: u32) -> Result<Vec<u32>, Error> {
        let name = self.key(key);
        let Value::Array(array) = self.file.get::<Value<'_>>(&name)? else {
            return Ok(vec![self.count(key, range)?; layers as usize]);
        };
        self.one_each(key, array.len(), layers)?;
        array.u32s()?.map(|n| within(name.clone(), n.into(), range.clone())).collect()
    }

    fn one_each(&self, key: &str, found: usize, layers: u32) -> Result<(), Error> {
        if found == layers as usize {
            return Ok(());
        }
        let expected = format!("one for all {layers} layers or one for each");
        Err(Error::Parameter { key: self.key(key), expected, found: format!("an array of {found}") })
    }

    /// (query heads, kv heads) of each layer. The first is a multiple of the second.
    pub fn heads(&self, layers: u32) -> Result<Vec<(u32, u32)>, Error> {
        let heads = self.per_layer("attention.head_count", 1..=1024, layers)?;
        let has_kv = self.file.get_opt::<Value<'_>>(&self.key("attention.head_count_kv"))?.is_some();
        let kv = if has_kv { self.per_layer("attention.head_count_kv", 1..=1024, layers)? } else { heads.clone() };
        let pair = |(heads, kv): (u32, u32)| {
            if heads.is_multiple_of(kv) {
                return Ok((heads, kv));
            }
            let expected = format!("a divisor of {heads} query heads");
            Err(Error::Parameter { key: self.key("attention.head_count_kv"), expected, found: kv.to_string() })
        };
        heads.into_iter().zip(kv).map(pair).collect()
    }

    /// Whether each layer has a sliding window, from `attention.sliding_window_pattern`. The key is
    /// an array of bools or a period; the last layer of each period has full attention. `period` is
    /// the default.
    pub fn sliding(&self, layers: u32, period: Option<u32>) -> Result<Vec<bool>, Error> {
        let key = "attention.sliding_window_pattern";
        match self.file.get_opt::<Value<'_>>(&self.key(key))? {
            Some(Value::Array(array)) => {
                self.one_each(key, array.len(), layers)?;
                Ok(array.bools()?.collect())
            }
            _ => {
                let periods = 1..=1024;
                let period = period
                    .map_or_else(|| self.count(key, periods.clone()), |p| self.count_or(key, periods.clone(), p))?;
                Ok((1..=layers).map(|l| !l.is_multiple_of(period)).collect())
            }
        }
    }

    /// For each layer, the layer whose keys and values it uses. This is the layer itself, except
    /// for the last `attention.shared_kv_layers`. These use the last layer of the same kind before
    /// them. `heads` is from [`Meta::heads`]; both layers must have equal numbers of kv heads.
    pub fn donors(&self, slides: &[bool], heads: &[(u32, u32)]) -> Result<Vec<usize>, Error> {
        let key = "attention.shared_kv_layers";
        let shared = self.count_or(key, 0..=slides.len() as u32 - 1, 0)?;
        let own = slides.len() - shared as usize;
        let donor = |l: usize| match l < own {
            true => Some(l),
            false => slides[..own].iter().rposition(|s| *s == slides[l]),
        };
        let all: Option<Vec<usize>> = (0..slides.len()).map(donor).collect();
        let expected =
            || format!("a number that leaves, of {} layers, one of each kind with its own keys", slides.len());
        let all = all.ok_or_else(|| Error::Parameter {
            key: self.key(key),
            expected: expected(),
            found: shared.to_string(),
        })?;
        let Some(l) = (0..heads.len()).find(|&l| heads[l].1 != heads[all[l]].1) else { return Ok(all) };
        let expected = format!("{} in layer {l}, as in layer {}, whose keys it uses", heads[all[l]].1, all[l]);
        Err(Error::Parameter { key: self.key("attention.head_count_kv"), expected, found: heads[l].1.to_string() })
    }

    /// A quantile of the normal distribution per layer; `None` for minus infinity.
    pub fn quantiles(&self, key: &str, layers: u32) -> Result<Vec<Option<f32>>, Error> {
        let name = self.key(key);
        let array: Array<'_> = self.file.get(&name)?;
        self.one_each(key, array.len(), layers)?;
        let quantile = |q: f32| match q {
            f32::NEG_INFINITY => Ok(None),
            _ if q.is_finite() => Ok(Some(q)),
            _ => Err(Error::Parameter {
                key: name.clone(),
                expected: "finite numbers or minus infinity".to_string(),
                found: q.to_string(),
            }),
        };
        array.f32s()?.map(quantile).collect()
    }

    /// Elements per head: `attention.key_length`, or the embedding length divided by the number of
    /// heads. Keys and values must have equally many.
    pub fn head_dim(&self, embedding_length: u32, heads: u32) -> Result<u32, Error> {
        self.head_dim_of("", embedding_length / heads)
    }

    /// Elements per head, from the keys that end in `suffix`: `attention.key_length` with the
    /// suffix, or `default`. Keys and values must have equally many.
    pub fn head_dim_of(&self, suffix: &str, default: u32) -> Result<u32, Error> {
        let dims = 4..=kernels::ops::MAX_HEAD_DIM;
        let key = format!("attention.key_length{suffix}");
        let dim = self.count_or(&key, dims.clone(), default)?;
        let value = self.count_or(&format!("attention.value_length{suffix}"), dims.clone(), dim)?;
        if dims.contains(&dim) && dim.is_multiple_of(4) && dim == value {
            return Ok(dim);
        }
        let expected = format!("a multiple of 4 within {} to {}, for keys and values alike", dims.start(), dims.end());
        Err(Error::Parameter { key: self.key(&key), expected, found: format!("{dim} and {value}") })
    }
}

fn within(key: String, found: u64, range: RangeInclusive<u32>) -> Result<u32, Error> {
    match u32::try_from(found).ok().filter(|n| range.contains(n)) {
        Some(n) => Ok(n),
        None => Err(Error::Parameter {
            key,
            expected: format!("within {} to {}", range.start(), range.end()),
            found: found.to_string(),
        }),
    }
}

fn positive(key: String, found: f32) -> Result<f32, Error> {
    if found.is_finite() && found > 0.0 {
        return Ok(found);
    }
    Err(Error::Parameter { key, expected: "a finite number above zero".to_string(), found: found.to_string() })
}
