//! Operands of single operations.

use crate::error::Error;
use crate::ops;
use gguf::GgmlType;

/// A matrix [rows, cols] in any weight format, with the byte layout of ggml.
#[derive(Copy, Clone, Debug)]
pub struct Matrix<'a> {
    pub ty: GgmlType,
    pub rows: usize,
    /// Every row is a whole number of blocks of the type.
    pub cols: usize,
    pub bytes: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// A matrix of f32, row by row.
    #[must_use]
    pub fn f32(values: &'a [f32], rows: usize, cols: usize) -> Self {
        Self { ty: GgmlType::F32, rows, cols, bytes: bytemuck::cast_slice(values) }
    }
}

/// The heads of an attention, and its mask and scale.
#[derive(Copy, Clone, Debug)]
pub struct Heads {
    pub heads: usize,
    /// A divisor of `heads`.
    pub kv_heads: usize,
    /// A multiple of 4, at most [`crate::ops::MAX_HEAD_DIM`].
    pub dim: usize,
    pub attend: ops::Attend,
}

impl Heads {
    pub(super) fn check(&self, operation: &'static str) -> Result<(), Error> {
        if self.kv_heads == 0 || self.heads == 0 || !self.heads.is_multiple_of(self.kv_heads) {
            return Err(argument(operation, "the kv heads do not divide the query heads"));
        }
        if self.dim == 0 || !self.dim.is_multiple_of(4) || self.dim > crate::attention::attention::MAX_HEAD_DIM as usize
        {
            return Err(argument(operation, "the head dimension is not a multiple of 4 up to 512"));
        }
        Ok(())
    }
}

pub fn argument(operation: &'static str, problem: &'static str) -> Error {
    Error::Argument { operation, problem }
}
