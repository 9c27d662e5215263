//! Hyper-parameters from a file's metadata, checked before anything believes them.

use crate::error::Error;
use gguf::{Array, Gguf, Value};
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
    pub fn key(&self, key: &str) -> String {
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
        Ok(self.optional_positive(key)?.unwrap_or(default))
    }

    /// A finite number above zero, where the file has one.
    pub fn optional_positive(&self, key: &str) -> Result<Option<f32>, Error> {
        let key = self.key(key);
        self.file.get_opt::<f32>(&key)?.map(|found| positive(key, found)).transpose()
    }

    /// A whole number within `range` for each of `layers`: one for all of them, or an array.
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

    /// (query heads, kv heads) of each layer, the one a multiple of the other.
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

    /// Whether each layer slides: `attention.sliding_window_pattern`, an array of bools or the period at whose end a layer
    /// sees everything, or that period by default.
    pub fn sliding(&self, layers: u32, period: Option<u32>) -> Result<Vec<bool>, Error> {
        let key = "attention.sliding_window_pattern";
        match self.file.get_opt::<Value<'_>>(&self.key(key))? {
            Some(Value::Array(array)) => {
                self.one_each(key, array.len(), layers)?;
                Ok(array.bools()?.collect())
            }
            _ => {
                let periods = 1..=1024;
                let period = period.map_or_else(|| self.count(key, periods.clone()), |p| self.count_or(key, periods.clone(), p))?;
                Ok((1..=layers).map(|l| !l.is_multiple_of(period)).collect())
            }
        }
    }

    /// The layer whose keys and values each layer uses: its own, or, for the last `attention.shared_kv_layers`, the last layer
    /// before them that is of its kind. `heads` are those of [`Meta::heads`], which must be the same for both.
    pub fn donors(&self, slides: &[bool], heads: &[(u32, u32)]) -> Result<Vec<usize>, Error> {
        let key = "attention.shared_kv_layers";
        let shared = self.count_or(key, 0..=slides.len() as u32 - 1, 0)?;
        let own = slides.len() - shared as usize;
        let donor = |l: usize| match l < own {
            true => Some(l),
            false => slides[..own].iter().rposition(|s| *s == slides[l]),
        };
        let all: Option<Vec<usize>> = (0..slides.len()).map(donor).collect();
        let expected = || format!("a number that leaves a layer of each kind among the first of {}", slides.len());
        let all = all.ok_or_else(|| Error::Parameter { key: self.key(key), expected: expected(), found: shared.to_string() })?;
        let Some(l) = (0..heads.len()).find(|&l| heads[l].1 != heads[all[l]].1) else { return Ok(all) };
        let expected = format!("{} in layer {l}, as in layer {}, whose keys it uses", heads[all[l]].1, all[l]);
        Err(Error::Parameter { key: self.key("attention.head_count_kv"), expected, found: heads[l].1.to_string() })
    }

    /// A quantile of the normal distribution for each of `layers`; none where it is minus infinity.
    pub fn quantiles(&self, key: &str, layers: u32) -> Result<Vec<Option<f32>>, Error> {
        let name = self.key(key);
        let array: Array<'_> = self.file.get(&name)?;
        self.one_each(key, array.len(), layers)?;
        let quantile = |q: f32| match q {
            f32::NEG_INFINITY => Ok(None),
            _ if q.is_finite() => Ok(Some(q)),
            _ => {
                Err(Error::Parameter { key: name.clone(), expected: "finite numbers or minus infinity".to_string(), found: q.to_string() })
            }
        };
        array.f32s()?.map(quantile).collect()
    }

    /// Elements per head: its own key, or the embedding shared among the heads; the same for keys and values.
    pub fn head_dim(&self, embedding_length: u32, heads: u32) -> Result<u32, Error> {
        self.head_dim_of("", embedding_length / heads)
    }

    /// The same for the keys that end in `suffix`.
    pub fn head_dim_of(&self, suffix: &str, default: u32) -> Result<u32, Error> {
        let dims = 4..=kernels::ops::attention::MAX_HEAD_DIM;
        let key = format!("attention.key_length{suffix}");
        let dim = self.count_or(&key, dims.clone(), default)?;
        let value = self.count_or(&format!("attention.value_length{suffix}"), dims.clone(), dim)?;
        if dims.contains(&dim) && dim.is_multiple_of(4) && dim == value {
            return Ok(dim);
        }
        let expected = format!("a multiple of 4 within {dims:?}, for keys and values alike");
        Err(Error::Parameter { key: self.key(&key), expected, found: format!("{dim} and {value}") })
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
