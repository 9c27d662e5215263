//! The tensors of a safetensors file.

use super::{AdapterError, Factor, Side};
use crate::error::json_reason;
use gguf::{GgmlType, Source};
use kernels::TensorBytes;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use std::sync::Arc;

/// Upper limit of the header's bytes. A thousand layers need less.
const MAX_HEADER_BYTES: u64 = 8 << 20;

/// The tensors of a file, and the texts beside them.
pub(super) struct Container {
    pub tensors: Vec<Stored>,
    texts: Vec<(String, String)>,
}

/// A tensor, whose data is read later.
pub(super) struct Stored {
    pub name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    bytes: TensorBytes,
}

impl Container {
    /// Reads the header.
    pub fn read(source: Box<dyn Source>) -> Result<Self, AdapterError> {
        let source: Arc<dyn Source> = source.into();
        let (data, header) = header(&*source)?;
        let mut tensors = vec![];
        for name in header.offset_keys() {
            let Some(info) = header.info(&name) else { continue };
            let end = data.saturating_add(info.data_offsets.1 as u64);
            if end > source.len_bytes() {
                return Err(AdapterError::Truncated { name, end, bytes: source.len_bytes() });
            }
            let bytes = TensorBytes::At(Arc::clone(&source), data + info.data_offsets.0 as u64);
            tensors.push(Stored {
                name,
                dtype: info.dtype,
                shape: info.shape.iter().map(|&n| n as u64).collect(),
                bytes,
            });
        }
        let texts = header.metadata().iter().flatten().map(|(key, text)| (key.clone(), text.clone())).collect();
        Ok(Self { tensors, texts })
    }

    /// Whether the factors are named as MLX names them.
    pub fn is_mlx(&self) -> bool {
        let ours =
            |name: &str| !name.starts_with("base_model.") && (name.ends_with(".lora_a") || name.ends_with(".lora_b"));
        self.tensors.iter().any(|tensor| ours(&tensor.name))
    }

    /// The text of this key.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.texts.iter().find(|(known, _)| known == key).map(|(_, text)| text.as_str())
    }
}

impl Stored {
    /// The tensor as a factor for `target`.
    pub fn factor(self, target: String, side: Side) -> Result<Factor, AdapterError> {
        let Self { name, dtype, shape, bytes } = self;
        let ty = match dtype {
            Dtype::F32 => GgmlType::F32,
            Dtype::F16 => GgmlType::F16,
            Dtype::BF16 => GgmlType::BF16,
            other => return Err(AdapterError::Type { name, ty: other.to_string() }),
        };
        let &[rows, cols] = shape.as_slice() else { return Err(AdapterError::Dimensions { name, found: shape }) };
        Factor::new(name, target, side, ty, [rows, cols], bytes)
    }

    /// [rows, columns] of a matrix.
    pub fn matrix(&self) -> Result<[u32; 2], AdapterError> {
        let shape: Option<Vec<u32>> = self.shape.iter().map(|n| u32::try_from(*n).ok()).collect();
        let matrix = shape.and_then(|shape| <[u32; 2]>::try_from(shape).ok());
        matrix.ok_or_else(|| AdapterError::Dimensions { name: self.name.clone(), found: self.shape.clone() })
    }
}

/// The offset of the data, and the parsed header.
fn header(source: &dyn Source) -> Result<(u64, Metadata), AdapterError> {
    let read = |offset, buf: &mut [u8]| {
        source.read_at(offset, buf).map_err(|error| AdapterError::Read { what: "the tensors", error })
    };
    let broken = |reason: String| AdapterError::Header { reason };
    let room = source.len_bytes().checked_sub(8).ok_or_else(|| broken("it has less than 8 bytes".to_string()))?;
    let mut length = [0; 8];
    read(0, &mut length)?;
    let length = u64::from_le_bytes(length);
    if length > room.min(MAX_HEADER_BYTES) {
        return Err(broken(format!("the file states a header of {length} bytes, but has {} bytes", room + 8)));
    }
    let mut text = vec![0; length as usize];
    read(8, &mut text)?;
    let header: Metadata = serde_json::from_slice(&text).map_err(|error| broken(json_reason(&error)))?;
    Ok((8 + length, header))
}
