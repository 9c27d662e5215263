//! Tensor infos. Each is checked against the file when the file is opened.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::{Error, GgmlType, Result};

/// The longest tensor name. The specification says 64; files with names of up to 512 bytes exist.
pub const MAX_NAME_BYTES: u64 = 512;

/// The most dimensions a tensor can have.
pub const MAX_DIMS: u32 = 4;

/// One tensor of a file. All fields were checked against the file when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo {
    name: Box<str>,
    /// Elements per dimension, the fastest first, as in the file. Unused dimensions are 1.
    pub dims: [u64; 4],
    /// Number of dimensions in the file, 1 to 4.
    pub n_dims: usize,
    /// The type's number in the file; [`TensorInfo::ty`] returns the type.
    pub ty_number: u32,
    /// Offset of the data in bytes from the start of the source. A split file's source is all its
    /// parts in order.
    pub offset: u64,
    /// Size of the data; 0 for an unknown type.
    pub bytes: u64,
}

impl TensorInfo {
    /// The tensor's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type. Fails if this crate does not know the type number.
    pub fn ty(&self) -> Result<GgmlType> {
        GgmlType::from_u32(self.ty_number)
            .ok_or_else(|| Error::UnknownTensorType { tensor: self.name.to_string(), number: self.ty_number })
    }

    /// The dimensions in the file, the fastest first.
    pub fn shape(&self) -> &[u64] {
        &self.dims[..self.n_dims]
    }

    /// Elements per row: the fastest dimension.
    pub fn cols(&self) -> u64 {
        self.dims[0]
    }

    /// Number of rows: the product of all dimensions except the fastest.
    pub fn rows(&self) -> u64 {
        self.dims[1..].iter().product()
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Reads one info. It does not check the position of the data; `offset` still counts from the
    /// start of the data section.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let range = cursor.name("tensor name", MAX_NAME_BYTES)?;
        let name: Box<str> = String::from_utf8_lossy(&cursor.bytes()[range]).into();
        let found = cursor.u32("number of dimensions")?;
        if found == 0 || found > MAX_DIMS {
            return Err(Error::DimensionCount { tensor: name.into(), found });
        }
        let (mut dims, n_dims) = ([1; 4], found as usize);
        for dim in &mut dims[..n_dims] {
            *dim = cursor.length("dimension")?;
        }
        let ty_number = cursor.u32("tensor type")?;
        let offset = cursor.u64("tensor offset")?;
        let bytes = data_bytes(&name, dims, n_dims, ty_number)?;
        Ok(Self { name, dims, n_dims, ty_number, offset, bytes })
    }
}

/// A shape, or another short list of numbers, as messages show it: `[2, 3]`.
pub fn shape_text<N: std::fmt::Display>(numbers: &[N]) -> String {
    format!("[{}]", numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

/// Checks a shape and returns the size of its data: 0 for an unknown type.
pub(crate) fn data_bytes(name: &str, dims: [u64; 4], n_dims: usize, ty_number: u32) -> Result<u64> {
    let impossible = || Error::Shape { tensor: name.into(), dims: dims[..n_dims].to_vec() };
    let elements = dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim)).ok_or_else(impossible)?;
    if elements == 0 || i64::try_from(elements).is_err() {
        return Err(impossible());
    }
    let Some(ty) = GgmlType::from_u32(ty_number) else { return Ok(0) };
    let (block, block_bytes) = (ty.block_size() as u64, ty.block_bytes() as u64);
    if !dims[0].is_multiple_of(block) {
        return Err(Error::TensorRow { tensor: name.into(), cols: dims[0], ty });
    }
    (elements / block).checked_mul(block_bytes).filter(|&bytes| i64::try_from(bytes).is_ok()).ok_or_else(impossible)
}

/// Checks the names and positions of all tensors and makes their offsets absolute. Returns their
/// indices sorted by name.
pub(crate) fn place(tensors: &mut [TensorInfo], alignment: u64, data: Range<u64>) -> Result<Vec<u32>> {
    let available = data.end.saturating_sub(data.start);
    for tensor in &mut *tensors {
        let (offset, bytes) = (tensor.offset, tensor.bytes);
        if !offset.is_multiple_of(alignment) {
            return Err(Error::Misaligned { tensor: tensor.name.to_string(), offset, alignment });
        }
        if offset.checked_add(occupied(tensor)).is_none_or(|end| end > available) {
            return Err(Error::OutOfFile { tensor: tensor.name.to_string(), offset, bytes, available });
        }
        tensor.offset += data.start;
    }
    let mut order: Vec<u32> = (0..tensors.len() as u32).collect();
    let at = |i: u32| &tensors[i as usize];
    order.sort_unstable_by_key(|&i| at(i).offset);
    for pair in order.windows(2) {
        let (first, second) = (at(pair[0]), at(pair[1]));
        if first.offset + occupied(first) > second.offset {
            return Err(Error::Overlap { first: first.name.to_string(), second: second.name.to_string() });
        }
    }
    by_name(tensors)
}

/// Indices of the tensors, sorted by name. Fails if a name occurs twice.
pub(crate) fn by_name(tensors: &[TensorInfo]) -> Result<Vec<u32>> {
    let name = |&i: &u32| tensors[i as usize].name();
    let mut order: Vec<u32> = (0..tensors.len() as u32).collect();
    order.sort_unstable_by_key(name);
    match order.windows(2).find(|pair| name(&pair[0]) == name(&pair[1])) {
        Some(pair) => Err(Error::Duplicate { what: "tensor", name: name(&pair[0]).into() }),
        None => Ok(order),
    }
}

/// The minimum size of a tensor in bytes. The size of an unknown type is not known, but it is at
/// least one byte.
fn occupied(tensor: &TensorInfo) -> u64 {
    tensor.bytes.max(1)
}
