//! Tensors before they are loaded, and tensors that the CPU executor has loaded.

use crate::error::Error;
use crate::exec::weights::TensorBytes;
use crate::graph::tensor::Weight;
use gguf::GgmlType;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) enum HostTensor {
    Vector(Arc<[f32]>),
    /// Bytes that were in memory before.
    Matrix(TensorBytes),
    /// Bytes that were read from a file.
    Read(Arc<Vec<u8>>),
}

/// A tensor that is not loaded yet.
#[derive(Clone)]
pub(crate) enum Listed {
    Vector(Arc<[f32]>),
    Matrix(TensorBytes),
    /// A vector in its file's type, which becomes f32 when it is loaded.
    Converted(GgmlType, TensorBytes),
}

impl Listed {
    /// The offset of the first byte in the file, if the bytes are of a file in its own type.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Vector(_) => None,
            Self::Matrix(source) | Self::Converted(_, source) => source.offset(),
        }
    }

    /// Bytes in the source.
    pub fn source_bytes(&self, weight: Weight) -> u64 {
        match self {
            Self::Vector(_) | Self::Matrix(_) => source_bytes(weight),
            Self::Converted(ty, _) => row_bytes(*ty, weight.cols),
        }
    }

    /// The tensor for the CPU executor. Bytes that are in memory already are not copied.
    pub fn on_host(self, weight: Weight) -> Result<HostTensor, Error> {
        Ok(match self {
            Self::Vector(values) => HostTensor::Vector(values),
            Self::Converted(ty, source) => {
                let bytes = source.read_all(row_bytes(ty, weight.cols))?;
                HostTensor::Vector(converted(ty, weight.cols, &bytes)?.into())
            }
            Self::Matrix(source) if source.bytes().is_some() => HostTensor::Matrix(source),
            Self::Matrix(source) => HostTensor::Read(Arc::new(source.read_all(source_bytes(weight))?)),
        })
    }
}

/// Bytes of a tensor in its source, which has its rows one after the other.
pub(crate) fn source_bytes(weight: Weight) -> u64 {
    row_bytes(weight.ty, weight.cols).saturating_mul(u64::from(weight.rows))
}

/// Bytes of a row in its source.
pub(crate) fn row_bytes(ty: GgmlType, cols: u32) -> u64 {
    ty.row_bytes(cols as usize).unwrap_or(0) as u64
}

/// The values of a vector of this many elements.
pub(crate) fn converted(ty: GgmlType, cols: u32, bytes: &[u8]) -> Result<Vec<f32>, Error> {
    let mut values = vec![0.0; cols as usize];
    gguf::dequantize(ty, bytes, &mut values)?;
    Ok(values)
}
