//! The header of a checkpoint: a header of safetensors.

use super::{CheckpointError, Facts};
use crate::tally::Tally;
use gguf::Source;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::{Value, json};

/// Bytes of a SHA-256 digest.
pub const DIGEST_BYTES: usize = 32;

/// The version that is written. Version 1 had the digest of samples of the model, and other names
/// of facts.
const VERSION: u64 = 2;

/// Upper limit of the header's bytes: a million tensors.
const MAX_HEADER_BYTES: u64 = 256 << 20;

/// The key of our object in the metadata.
const KEY: &str = "weft";

/// The tensors of a checkpoint, in order.
pub struct Layout {
    tensors: Vec<(String, TensorInfo)>,
}

/// What a checkpoint states beside its tensors.
pub struct Head {
    pub tally: Tally,
    pub facts: Facts,
    pub position: String,
}

impl Layout {
    /// The layout of tensors of so many f32, with the digest behind them.
    pub fn of(kept: &[(String, usize, u32)]) -> Self {
        let mut at = 0;
        let mut place = |dtype: Dtype, count: usize, bytes: usize| {
            let data_offsets = (at, at + bytes);
            at += bytes;
            TensorInfo { dtype, shape: vec![count], data_offsets }
        };
        let mut tensors: Vec<_> = kept
            .iter()
            .map(|(name, _, words)| (name.clone(), place(Dtype::F32, *words as usize, 4 * *words as usize)))
            .collect();
        tensors.push(("sha256".to_string(), place(Dtype::U8, DIGEST_BYTES, DIGEST_BYTES)));
        Self { tensors }
    }

    fn data_bytes(&self) -> u64 {
        self.tensors.last().map_or(0, |(_, info)| info.data_offsets.1 as u64)
    }

    /// The bytes in front of the data.
    pub fn header(&self, head: &Head) -> Vec<u8> {
        let object = json!({ "version": VERSION, "tally": head.tally.to_json(), "facts": head.facts, "position": head.position });
        let metadata = [(KEY.to_string(), object.to_string())].into_iter().collect();
        let metadata = Metadata::new(Some(metadata), self.tensors.clone()).expect("tensors one after the other");
        let mut text = serde_json::to_vec(&metadata).expect("a header is JSON");
        // Data begins at a multiple of 8 bytes, as safetensors asks.
        text.resize(text.len().next_multiple_of(8), b' ');
        [&(text.len() as u64).to_le_bytes()[..], &text].concat()
    }

    /// Checks that a file of so many bytes has these tensors.
    pub fn check(&self, header: &Header, found: u64) -> Result<(), CheckpointError> {
        let refused = |reason: String| Err(CheckpointError::Tensors { reason });
        for (name, info) in &self.tensors {
            let Some(held) = header.metadata.info(name) else { return refused(format!("it has no {name}")) };
            if held.shape != info.shape {
                return refused(format!("{name} has {} elements, not {}", elements(held), elements(info)));
            }
            if (held.dtype, held.data_offsets) != (info.dtype, info.data_offsets) {
                return refused(format!("{name} has another type or another place"));
            }
        }
        let count = header.metadata.offset_keys().len();
        if count != self.tensors.len() {
            return refused(format!("it has {count}, this run has {}", self.tensors.len()));
        }
        let expected = header.bytes + self.data_bytes();
        if expected == found { Ok(()) } else { Err(CheckpointError::Truncated { expected, found }) }
    }
}

fn elements(info: &TensorInfo) -> String {
    info.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" by ")
}

/// The header of a file.
pub struct Header {
    /// Bytes of the header: the offset of the data.
    pub bytes: u64,
    pub version: u64,
    pub head: Head,
    metadata: Metadata,
}

impl Header {
    /// Reads the header of a checkpoint, and checks that the file has all the data it names.
    pub fn read(from: &dyn Source) -> Result<Self, CheckpointError> {
        let foreign = |reason: &str| CheckpointError::Foreign { reason: reason.to_string() };
        let read = |at, bytes: &mut [u8]| from.read_at(at, bytes).map_err(|error| CheckpointError::Read { error });
        let found = from.len_bytes();
        if found < 8 {
            return Err(foreign("it has less than 8 bytes"));
        }
        let mut length = [0; 8];
        read(0, &mut length)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER_BYTES {
            return Err(foreign("it is no file of safetensors"));
        }
        let bytes = 8 + length;
        if bytes > found {
            return Err(CheckpointError::Truncated { expected: bytes, found });
        }
        let mut text = vec![0; length as usize];
        read(8, &mut text)?;
        let metadata: Metadata = serde_json::from_slice(&text).map_err(|_| foreign("it is no file of safetensors"))?;
        let object = metadata
            .metadata()
            .as_ref()
            .and_then(|keys| keys.get(KEY))
            .ok_or_else(|| foreign("it has tensors only"))?;
        let (version, head) = head(object)?;
        let expected = bytes.saturating_add(metadata.data_len() as u64);
        if expected > found {
            return Err(CheckpointError::Truncated { expected, found });
        }
        Ok(Self { bytes, version, head, metadata })
    }
}

/// The version and the content of our object.
fn head(object: &str) -> Result<(u64, Head), CheckpointError> {
    let broken = || CheckpointError::Foreign { reason: "its metadata is no object of ours".to_string() };
    let object: Value = serde_json::from_str(object).map_err(|_| broken())?;
    let found = object["version"].as_u64().ok_or_else(broken)?;
    if found > VERSION {
        return Err(CheckpointError::Version { found, known: VERSION });
    }
    let facts = object["facts"].as_object().ok_or_else(broken)?.iter();
    let facts = facts.map(|(name, value)| Some((name.clone(), value.as_str()?.to_string()))).collect::<Option<Facts>>();
    let head = Head {
        tally: Tally::from_json(&object["tally"]).ok_or_else(broken)?,
        facts: facts.ok_or_else(broken)?,
        position: object["position"].as_str().ok_or_else(broken)?.to_string(),
    };
    Ok((found, head))
}
