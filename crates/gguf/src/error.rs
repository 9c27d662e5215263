//! The errors of this crate. Each message includes its cause; `source()` returns nothing.

use std::io;
use std::path::PathBuf;

use crate::{GgmlType, ValueType, shape_text};

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every error of reading, converting or writing a GGUF file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another error, together with the path of the file that it concerns.
    #[error("{}: {error}", path.display())]
    InFile { path: PathBuf, error: Box<Error> },
    /// The file cannot be opened.
    #[error("cannot open: {error}")]
    Open { error: io::Error },
    /// The path names a directory, a pipe or a device.
    #[error("this is {found}, not a regular file; pass the path of a .gguf file")]
    NotAFile { found: &'static str },
    /// The file cannot be mapped into memory.
    #[error("cannot map the file: {error}; open it without mapping to read it instead")]
    Map { error: io::Error },
    /// A positioned read failed although the file was long enough when opened.
    #[error(
        "cannot read {len} bytes at offset {offset}: {error}; the file may have been cut short or \
         replaced since it was opened"
    )]
    Read { offset: u64, len: usize, error: io::Error },
    /// A positioned read of a tensor's data failed although the file was long enough when opened.
    /// The offset counts from the start of the tensor.
    #[error(
        "cannot read {len} bytes at offset {offset} of tensor `{tensor}`: {error}; the file may \
         have been cut short or replaced since it was opened"
    )]
    ReadTensor { tensor: String, offset: u64, len: usize, error: io::Error },
    /// Writing failed.
    #[error("cannot write: {error}")]
    Write { error: io::Error },

    /// The first four bytes are not `GGUF`.
    #[error(
        "not a gguf file: it starts with \"{}\" instead of \"GGUF\"{}",
        found.escape_ascii(),
        hint_for_magic(found)
    )]
    Magic { found: [u8; 4] },
    /// The file was written for big-endian machines.
    #[error("a big-endian gguf file; run gguf-py's `gguf-convert-endian <file> little` on it")]
    BigEndian,
    /// A version that this crate does not know.
    #[error(
        "gguf version {found} is not one of 1, 2 and 3; convert the model again or update this \
         program"
    )]
    Version { found: u32 },
    /// The file ends before the end of an item that it announces.
    #[error(
        "the file ends within {what} at offset {offset}: {needed} bytes needed, {available} left; \
         it is damaged or cut short"
    )]
    Truncated { what: &'static str, offset: u64, needed: u64, available: u64 },
    /// More entries than the rest of the file could hold.
    #[error(
        "{count} {what} announced at offset {offset} cannot fit in the remaining {available} \
         bytes; the file is damaged"
    )]
    Count { what: &'static str, count: u64, offset: u64, available: u64 },
    /// Header larger than the limit.
    #[error(
        "the header exceeds {limit} bytes at offset {offset}; the header of a real model is far \
         smaller, so the file is damaged"
    )]
    HeaderSize { offset: u64, limit: u64 },
    /// A key or a tensor name that is empty, too long or not UTF-8.
    #[error("the {what} at offset {offset} is {problem}")]
    Name { what: &'static str, offset: u64, problem: NameProblem },
    /// A key or a tensor name that occurs twice.
    #[error("{what} `{name}` occurs twice")]
    Duplicate { what: &'static str, name: String },
    /// A value type number outside 0..=12.
    #[error("`{key}` has the unknown value type {found} (0 to 12 are known)")]
    UnknownValueType { key: String, found: u32 },
    /// A bool that is neither 0 nor 1.
    #[error("`{key}` holds the byte {found} as a bool; a bool is 0 or 1")]
    BadBool { key: String, found: u8 },
    /// Arrays nested too deep.
    #[error("`{key}` nests arrays more than {limit} deep")]
    Nesting { key: String, limit: usize },
    /// `general.alignment` is not a power of two within the limit, or not a u32.
    #[error("`general.alignment` is {found}; it must be a u32 power of two of at most {limit}")]
    Alignment { found: String, limit: u32 },

    /// No such key.
    #[error("the metadata lacks `{key}`")]
    MissingKey { key: String },
    /// The key holds a value of another type, or a value out of range.
    #[error("`{key}` should be {expected} but is {found}")]
    KeyType { key: String, expected: String, found: String },

    /// No such tensor.
    #[error("the file has no tensor `{tensor}`")]
    MissingTensor { tensor: String },
    /// A type number that this crate does not know. The error is raised when the tensor is used.
    #[error(
        "tensor `{tensor}` has the unknown type number {number}; requantize the model or update \
         this program"
    )]
    UnknownTensorType { tensor: String, number: u32 },
    /// A number of dimensions outside 1..=4.
    #[error("tensor `{tensor}` has {found} dimensions (1 to 4 are possible)")]
    DimensionCount { tensor: String, found: u32 },
    /// A zero dimension, or a product beyond 63 bits.
    #[error("tensor `{tensor}` has the impossible shape {}", shape_text(dims))]
    Shape { tensor: String, dims: Vec<u64> },
    /// A tensor whose rows are not a whole number of blocks.
    #[error(
        "tensor `{tensor}` has rows of {cols} elements, not a multiple of the {} elements of a \
         {ty} block",
        ty.block_size()
    )]
    TensorRow { tensor: String, cols: u64, ty: GgmlType },
    /// An offset that is not a multiple of the alignment.
    #[error(
        "tensor `{tensor}` lies at data offset {offset}, not a multiple of the alignment \
         {alignment}"
    )]
    Misaligned { tensor: String, offset: u64, alignment: u64 },
    /// A tensor that extends beyond the end of the data section.
    #[error(
        "tensor `{tensor}` needs {bytes} bytes at data offset {offset} but the data section has \
         {available}; the file is cut short"
    )]
    OutOfFile { tensor: String, offset: u64, bytes: u64, available: u64 },
    /// Two tensors share bytes.
    #[error("tensors `{first}` and `{second}` overlap")]
    Overlap { first: String, second: String },
    /// A read beyond the end of the tensor.
    #[error("{len} bytes at offset {offset} extend beyond tensor `{tensor}` of {bytes} bytes")]
    TensorRange { tensor: String, offset: u64, len: usize, bytes: u64 },
    /// A tensor too large for this machine's memory.
    #[error("tensor `{tensor}` of {elements} elements does not fit in memory as f32")]
    OutOfMemory { tensor: String, elements: u64 },

    /// A part of a split file is not at its expected path.
    #[error("part {number} of {count} is missing: {}", path.display())]
    MissingPart { path: PathBuf, number: usize, count: usize },
    /// A part of a split file whose file name does not lead to the other parts.
    #[error(
        "this is one part of a file that is split into {count}; name the parts like \
         `model-00001-of-{count:05}.gguf`, in one folder"
    )]
    PartAlone { count: usize },
    /// A part whose metadata does not agree with the first part.
    #[error("part {number} does not belong to this model: `{key}` is {found}, expected {expected}")]
    WrongPart { number: usize, key: &'static str, expected: String, found: String },

    /// The number of bytes does not match the number of elements.
    #[error(
        "{bytes} bytes of {ty} do not make {elements} elements (blocks of {} bytes hold {})",
        ty.block_bytes(),
        ty.block_size()
    )]
    BlockCount { ty: GgmlType, bytes: usize, elements: usize },
    /// A row length that the type cannot hold.
    #[error(
        "rows of {cols} elements are not a multiple of the {} elements of a {ty} block",
        ty.block_size()
    )]
    RowLength { ty: GgmlType, cols: usize },
    /// Values that are not a whole number of rows.
    #[error("{elements} elements are not a whole number of rows of {cols}")]
    RowCount { elements: usize, cols: usize },
    /// A value that is NaN or infinite.
    #[error("element {index} is {value}; only finite values can be quantized")]
    NotFinite { index: usize, value: f32 },
    /// Values so large that their scale is infinite in f16.
    #[error(
        "the elements from {index} on are too large for the f16 scale of a {ty} block; keep the \
         tensor in F32"
    )]
    ScaleRange { ty: GgmlType, index: usize },
    /// A type that this crate can read but not write.
    #[error(
        "{ty} can be read but not written; quantize to one of {}",
        crate::quants::WRITTEN.map(|ty| ty.name()).join(", ")
    )]
    NoQuantizer { ty: GgmlType },

    /// The size of a tensor's data does not match its shape and type.
    #[error("tensor `{tensor}` has {found} bytes of data, its shape and type need {expected}")]
    DataSize { tensor: String, expected: u64, found: u64 },
    /// A tensor of a type that only memory has.
    #[error("tensor `{tensor}` is {ty}, which has no number in gguf files; write it as F16 or F32")]
    NotInFiles { tensor: String, ty: GgmlType },
    /// A metadata array whose elements differ in type.
    #[error("`{key}` mixes {expected} and {found} in one array")]
    MixedArray { key: String, expected: ValueType, found: ValueType },
}

/// The problem with a key or a tensor name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// The name has no bytes.
    #[error("empty")]
    Empty,
    /// The name has more bytes than the limit.
    #[error("{bytes} bytes long; at most {limit} are allowed")]
    TooLong { bytes: u64, limit: u64 },
    /// The name is not UTF-8.
    #[error("not valid utf-8")]
    NotUtf8,
}

impl Error {
    /// Adds the path of the file to this error, unless it already has one.
    pub fn in_file(self, path: impl Into<PathBuf>) -> Self {
        match self {
            Error::InFile { .. } => self,
            error => Error::InFile { path: path.into(), error: Box::new(error) },
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Open { error } | Error::Write { error } => error,
            error => io::Error::other(error),
        }
    }
}

fn hint_for_magic(found: &[u8; 4]) -> &'static str {
    match found {
        b"ggml" | b"ggmf" | b"ggjt" | b"ggla" | b"lmgg" | b"fmgg" | b"tjgg" | b"algg" => {
            " (a format older than gguf; convert the model again)"
        }
        b"PK\x03\x04" => " (a zip archive, perhaps a PyTorch checkpoint; convert it with convert_hf_to_gguf.py)",
        b"vers" => " (a Git LFS pointer, not the file itself; fetch it with `git lfs pull`)",
        _ => "",
    }
}
