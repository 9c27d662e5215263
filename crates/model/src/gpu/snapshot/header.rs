//! The header of a snapshot: everything except the rows of the cache. Numbers are little-endian.

use super::error::SnapshotError;
use crate::adapter::Applied;
use crate::arch::Cache;
use crate::sampling::Sampling;
use cpu_ref::KvType;

/// The contents of the header.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub architecture: String,
    /// Digest of the model file.
    pub model: [u8; 32],
    /// The active adapters, in order.
    pub adapters: Vec<Adapter>,
    pub kv: KvType,
    pub caches: Vec<Cache>,
    /// Number of positions whose keys and values are saved.
    pub evaluated: u32,
    /// Number of tokens that context shifts dropped.
    pub dropped: u32,
    pub tokens: Vec<u32>,
    pub sampling: Option<Sampling>,
    pub note: Vec<u8>,
}

/// An adapter that keys and values were computed with.
#[derive(Clone, Debug)]
pub(super) struct Adapter {
    pub digest: [u8; 32],
    pub scale: f32,
    /// The file name, for messages.
    pub name: String,
}

impl PartialEq for Adapter {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest && self.scale == other.scale
    }
}

impl Adapter {
    pub fn new(applied: &Applied) -> Self {
        let name = applied.adapter.path().and_then(|path| path.file_name());
        let name = name.map_or_else(|| "an adapter".to_string(), |name| name.to_string_lossy().into_owned());
        Self { digest: applied.adapter.digest, scale: applied.scale, name }
    }
}

impl std::fmt::Display for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.60} times {}", self.name, self.scale)
    }
}

const KV: [KvType; 3] = [KvType::F32, KvType::F16, KvType::Q8_0];

impl Header {
    /// The first saved position of a cache: 0, or with a window the first position that the last or
    /// the next row attends to.
    pub fn first(&self, cache: &Cache) -> u32 {
        cache.window.map_or(0, |window| self.evaluated.saturating_sub(window))
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![];
        let number = |out: &mut Vec<u8>, n: u32| out.extend_from_slice(&n.to_le_bytes());
        let bytes = |out: &mut Vec<u8>, bytes: &[u8]| {
            number(out, bytes.len() as u32);
            out.extend_from_slice(bytes);
        };
        bytes(&mut out, self.architecture.as_bytes());
        out.extend_from_slice(&self.model);
        number(&mut out, self.adapters.len() as u32);
        for adapter in &self.adapters {
            out.extend_from_slice(&adapter.digest);
            number(&mut out, adapter.scale.to_bits());
            bytes(&mut out, adapter.name.as_bytes());
        }
        number(&mut out, KV.iter().position(|ty| *ty == self.kv).unwrap_or_default() as u32);
        number(&mut out, self.caches.len() as u32);
        for cache in &self.caches {
            number(&mut out, cache.width);
            number(&mut out, cache.window.unwrap_or(0));
        }
        number(&mut out, self.evaluated);
        number(&mut out, self.dropped);
        number(&mut out, self.tokens.len() as u32);
        self.tokens.iter().for_each(|&id| number(&mut out, id));
        number(&mut out, u32::from(self.sampling.is_some()));
        if let Some(s) = &self.sampling {
            let floats =
                [s.temperature, s.top_p, s.min_p, s.repetition_penalty, s.frequency_penalty, s.presence_penalty];
            floats.iter().for_each(|x| number(&mut out, x.to_bits()));
            [s.top_k, s.last_n, s.seed as u32, (s.seed >> 32) as u32].into_iter().for_each(|n| number(&mut out, n));
        }
        bytes(&mut out, &self.note);
        out
    }

    /// Parses exactly the bytes that [`Header::encode`] writes. Memory stays proportional to the
    /// length of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let mut from = Cursor(bytes);
        let architecture = from.text("architecture")?;
        let model = from.digest()?;
        let adapters = from.number("adapters")?;
        let adapter = |_| {
            Ok(Adapter {
                digest: from.digest()?,
                scale: f32::from_bits(from.number("adapters")?),
                name: from.text("adapters")?,
            })
        };
        let adapters = (0..adapters).map(adapter).collect::<Result<_, SnapshotError>>()?;
        let kv = *KV.get(from.number("cache type")? as usize).ok_or(SnapshotError::Field { part: "cache type" })?;
        let caches = from.number("caches")?;
        let caches = from.words("caches", u64::from(caches) * 2)?;
        let caches =
            caches.chunks_exact(2).map(|c| Cache { width: c[0], window: (c[1] > 0).then_some(c[1]) }).collect();
        let (evaluated, dropped) = (from.number("position")?, from.number("position")?);
        let tokens = from.number("tokens")?;
        let tokens = from.words("tokens", u64::from(tokens))?;
        if evaluated as usize > tokens.len() {
            return Err(SnapshotError::Field { part: "position" });
        }
        let sampling = match from.number("sampling")? {
            0 => None,
            1 => Some(sampling(&from.words("sampling", 10)?)?),
            _ => return Err(SnapshotError::Field { part: "sampling" }),
        };
        let note = from.bytes("note")?.to_vec();
        match from.0 {
            [] => Ok(Self { architecture, model, adapters, kv, caches, evaluated, dropped, tokens, sampling, note }),
            _ => Err(SnapshotError::Field { part: "header" }),
        }
    }
}

/// The sampling parameters, if a sampler can use them.
fn sampling(words: &[u32]) -> Result<Sampling, SnapshotError> {
    let float = |n: usize| f32::from_bits(words[n]);
    let sampling = Sampling {
        temperature: float(0),
        top_p: float(1),
        min_p: float(2),
        repetition_penalty: float(3),
        frequency_penalty: float(4),
        presence_penalty: float(5),
        top_k: words[6],
        last_n: words[7],
        seed: u64::from(words[8]) | u64::from(words[9]) << 32,
    };
    let shares = sampling.top_p > 0.0 && sampling.top_p <= 1.0 && (0.0..=1.0).contains(&sampling.min_p);
    let finite = (0..6).all(|n| float(n).is_finite());
    let sensible = finite && shares && sampling.temperature >= 0.0 && sampling.repetition_penalty > 0.0;
    if sensible { Ok(sampling) } else { Err(SnapshotError::Field { part: "sampling" }) }
}

/// The bytes that are not parsed yet.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, part: &'static str, needed: u64) -> Result<&'a [u8], SnapshotError> {
        let found = self.0.len() as u64;
        if needed > found {
            return Err(SnapshotError::Truncated { part, needed, found });
        }
        let (taken, rest) = self.0.split_at(needed as usize);
        self.0 = rest;
        Ok(taken)
    }

    fn words(&mut self, part: &'static str, count: u64) -> Result<Vec<u32>, SnapshotError> {
        let bytes = self.take(part, 4 * count)?;
        Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    fn number(&mut self, part: &'static str) -> Result<u32, SnapshotError> {
        Ok(self.words(part, 1)?[0])
    }

    fn bytes(&mut self, part: &'static str) -> Result<&'a [u8], SnapshotError> {
        let len = self.number(part)?;
        self.take(part, u64::from(len))
    }

    fn text(&mut self, part: &'static str) -> Result<String, SnapshotError> {
        String::from_utf8(self.bytes(part)?.to_vec()).map_err(|_| SnapshotError::Field { part })
    }

    fn digest(&mut self) -> Result<[u8; 32], SnapshotError> {
        self.take("digest", 32)?.try_into().map_err(|_| SnapshotError::Field { part: "digest" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            architecture: "qwen3".into(),
            model: [7; 32],
            adapters: vec![Adapter { digest: [9; 32], scale: 0.5, name: "french.gguf".into() }],
            kv: KvType::Q8_0,
            caches: vec![Cache { width: 64, window: Some(8) }, Cache { width: 32, window: None }],
            evaluated: 20,
            dropped: 3,
            tokens: (0..21).collect(),
            sampling: Some(Sampling { seed: 1 << 40, ..Sampling::default() }),
            note: b"a note".to_vec(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for header in [
            header(),
            Header { adapters: vec![], sampling: None, note: vec![], tokens: vec![], evaluated: 0, ..header() },
        ] {
            assert_eq!(Header::decode(&header.encode()).expect("a good header"), header);
        }
        let firsts = header().caches.iter().map(|cache| header().first(cache)).collect::<Vec<_>>();
        assert_eq!(firsts, [12, 0]);
    }

    #[test]
    fn every_shorter_or_longer_header_is_refused() {
        let bytes = header().encode();
        for len in 0..bytes.len() {
            assert!(Header::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
        assert!(matches!(Header::decode(&[&bytes[..], &[0]].concat()), Err(SnapshotError::Field { part: "header" })));
    }

    #[test]
    fn parameters_that_no_sampler_takes_are_refused() {
        let with = |sampling| Header::decode(&Header { sampling: Some(sampling), ..header() }.encode());
        for bad in [f32::NAN, f32::INFINITY, -1.0] {
            assert!(with(Sampling { temperature: bad, ..Sampling::default() }).is_err(), "{bad}");
            assert!(with(Sampling { top_p: bad, ..Sampling::default() }).is_err(), "{bad}");
        }
        assert!(with(Sampling { repetition_penalty: 0.0, ..Sampling::default() }).is_err());
        assert!(matches!(
            Header::decode(&Header { evaluated: 22, ..header() }.encode()),
            Err(SnapshotError::Field { part: "position" })
        ));
    }
}
