//! One file's header, parsed and checked.

use crate::cursor::Cursor;
use crate::metadata::Metadata;
use crate::tensor::{self, TensorInfo};
use crate::{Error, Result, Source, Value};

/// The alignment of files without `general.alignment`.
pub const DEFAULT_ALIGNMENT: u32 = 32;

/// The largest alignment that is accepted.
pub const MAX_ALIGNMENT: u32 = 1 << 20;

/// The parsed header of one file or of one part of a split file.
pub struct Header {
    /// The header's bytes, unless they are read in place from the start of the source.
    pub buffer: Option<Vec<u8>>,
    pub version: u32,
    pub alignment: u32,
    pub metadata: Metadata,
    pub tensors: Vec<TensorInfo>,
    /// Indices of `tensors`, sorted by name.
    pub by_name: Vec<u32>,
}

impl Header {
    pub fn parse(source: &dyn Source) -> Result<Self> {
        let mut cursor = Cursor::new(source);
        let version = version(&mut cursor)?;
        cursor.wide = version > 1;
        let length = cursor.length_bytes();
        // The minimum sizes. A tensor info: length of the name, number of dimensions, type and
        // offset. A key: length of the key, type and a value of one byte.
        let tensor_count = cursor.count("tensors", length + 16)?;
        let key_count = cursor.count("keys", length + 5)?;
        let metadata = Metadata::parse(&mut cursor, key_count)?;
        let alignment = alignment(metadata.get(cursor.bytes(), "general.alignment"))?;
        let mut tensors = Vec::new();
        for _ in 0..tensor_count {
            tensors.push(TensorInfo::parse(&mut cursor)?);
        }
        let data = cursor.pos().next_multiple_of(alignment.into())..cursor.len();
        let by_name = tensor::place(&mut tensors, alignment.into(), data)?;
        Ok(Self { buffer: cursor.into_buffer(), version, alignment, metadata, tensors, by_name })
    }

    /// The header's bytes, given the source that it was parsed from.
    pub fn bytes<'a>(&'a self, source: &'a dyn Source) -> &'a [u8] {
        match &self.buffer {
            Some(buffer) => buffer,
            None => source.bytes().unwrap_or_default(),
        }
    }
}

fn version(cursor: &mut Cursor<'_>) -> Result<u32> {
    let magic = cursor.u32("magic")?.to_le_bytes();
    match &magic {
        b"GGUF" => {}
        b"FUGG" => return Err(Error::BigEndian),
        _ => return Err(Error::Magic { found: magic }),
    }
    let found = cursor.u32("version")?;
    match found {
        1..=3 => Ok(found),
        _ if (1..=3).contains(&found.swap_bytes()) => Err(Error::BigEndian),
        _ => Err(Error::Version { found }),
    }
}

fn alignment(value: Option<Value<'_>>) -> Result<u32> {
    match value {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(Value::U32(alignment)) if alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT => Ok(alignment),
        Some(other) => Err(Error::Alignment { found: other.describe(), limit: MAX_ALIGNMENT }),
    }
}
