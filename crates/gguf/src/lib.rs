//! Reads, checks, dequantizes, quantizes and writes GGUF, the file format of llama.cpp models.
//!
//! ```no_run
//! use gguf::{Array, Gguf};
//!
//! fn main() -> gguf::Result<()> {
//!     let gguf = Gguf::open("model.gguf")?;
//!     println!("{} has {} tensors", gguf.architecture()?, gguf.tensors().len());
//!     let embd = gguf.dequantized(gguf.tensor("token_embd.weight")?)?;
//!     let tokens: Array = gguf.get("tokenizer.ggml.tokens")?;
//!     println!("{} weights for each of {} tokens", embd.len() / tokens.len(), tokens.len());
//!     Ok(())
//! }
//! ```
//!
//! In reading order:
//!
//! * [`Gguf`] is an opened file. [`OpenOptions`] and [`Source`] decide how its bytes are read: by
//!   positioned reads, from memory, or mapped (feature `mmap`, off by default).
//! * [`Value`], [`Array`] and [`FromValue`] are the metadata, with checked types.
//! * [`TensorInfo`] describes a tensor. [`GgmlType`] is its type, with the [`Field`]s of a block.
//! * [`dequantize`] and [`quantize`] convert blocks of every type. [`quants`] has the codebooks.
//! * [`GgufBuilder`] collects metadata and tensors and writes a file. [`atomic_write`] writes any
//!   file completely or not at all.
//! * [`Directory`] is a folder of files: in the file system, in memory, or with another host.
//! * [`Progress`] is how far some work is, in all crates of the workspace.
//! * [`Error`] names the key or tensor, the problem, and often a remedy.
//!
//! A file can be made and read in memory:
//!
//! ```
//! let file = gguf::GgufBuilder::new().set("general.architecture", "qwen3").to_bytes()?;
//! let gguf = gguf::Gguf::from_bytes(file)?;
//! assert_eq!(gguf.architecture()?, "qwen3");
//! # Ok::<(), gguf::Error>(())
//! ```
//!
//! Every byte of a file is untrusted. Lengths are checked before memory is allocated, and sums and
//! products are checked for overflow. A file that opened without error cannot make a later call
//! panic or read outside the file. The only `unsafe` is the call that maps a file (`source/map.rs`,
//! feature `mmap`).

mod types;

mod fields;

mod error;

mod source;

mod remote;

mod sparse;

mod cursor;

mod header;

mod metadata;

mod value;

mod array;

mod convert;

mod tensor;

mod gguf;

mod split;

pub mod quants;

mod meta_value;

mod build;

mod atomic;

mod directory;

mod progress;

mod host;

#[doc(hidden)]
pub mod fuzz;

pub use array::Array;
pub use atomic::atomic_write;
pub use build::GgufBuilder;
pub use convert::FromValue;
pub use directory::{Directory, FileDirectory, Item, MemoryDirectory};
pub use error::{Error, NameProblem, Result};
pub use fields::Field;
pub use gguf::{Gguf, OpenOptions};
pub use host::{BoxFuture, BoxReport, MaybeSend, MaybeSync, PartReport, Report};
pub use meta_value::MetaValue;
pub use progress::Progress;
pub use quants::{dequantize, quantize};
pub use remote::Remote;
#[cfg(feature = "mmap")]
pub use source::MapSource;
pub use source::{AsyncSource, FileSource, JoinedSource, Source};
pub use sparse::SparseSource;
pub use tensor::{TensorInfo, shape_text};
pub use types::GgmlType;
pub use value::{Value, ValueType};
