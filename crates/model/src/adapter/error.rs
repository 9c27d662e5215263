//! Errors in an adapter.

use crate::error::Size;
use std::io;
use std::path::PathBuf;

/// Why an adapter is refused. Shapes are [rows, columns].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// Another error, with the path of the adapter.
    #[error("{}: {error}", path.display())]
    In { path: PathBuf, error: Box<Self> },
    /// A file of the adapter cannot be read.
    #[error("cannot read {what}: {error}")]
    Read { what: &'static str, error: io::Error },
    /// The GGUF container is broken.
    #[error(transparent)]
    File(#[from] gguf::Error),
    /// The safetensors header is broken.
    #[error("not an adapter: neither a GGUF file nor a safetensors file: {reason}")]
    Header { reason: String },
    /// A GGUF file of another kind.
    #[error("key {key} is {found:?}; in an adapter it is {expected:?}")]
    Kind { key: &'static str, expected: &'static str, found: String },
    /// `adapter_config.json` lacks a field or has a bad one.
    #[error("adapter_config.json: {reason}")]
    Config { reason: String },
    /// A feature of PEFT or llama.cpp beyond LoRA of linear layers.
    #[error(
        "{key} = {value} is not supported; \
         this version applies LoRA and rsLoRA without biases or other weights"
    )]
    Feature { key: String, value: String },
    /// A tensor that is not a factor of a supported layer.
    #[error(
        "tensor {name} is not supported: adapters may change token_embd, output, and {} of any \
         layer",
        super::names()
    )]
    Target { name: String },
    /// The tensor's type is not a type of factors.
    #[error("tensor {name} has the type {ty}; factors must be F32, F16 or BF16")]
    Type { name: String, ty: String },
    /// The file ends inside a tensor.
    #[error("tensor {name} ends at byte {end}, but the file has {bytes} bytes; it is cut short")]
    Truncated { name: String, end: u64, bytes: u64 },
    /// The values of a factor cannot be read.
    #[error("tensor {name}: {error}")]
    Values { name: String, error: Box<kernels::Error> },
    /// Two tensors for the same factor.
    #[error("tensor {name} is a second one for the same factor of {target}")]
    Duplicate { name: String, target: String },
    /// A factor without its partner.
    #[error("tensor {name} has no partner: the factor {missing} of {target} is missing")]
    Partner { name: String, missing: &'static str, target: String },
    /// A factor that does not have two dimensions, or has an empty one.
    #[error("tensor {name} is {found:?}; a factor must have rows and columns")]
    Dimensions { name: String, found: Vec<u64> },
    /// A factor whose shape does not match its partner, the adapter's rank or the model.
    #[error("tensor {name} is {found:?}, {wanted} {expected:?}")]
    Shape { name: String, expected: [u32; 2], found: [u32; 2], wanted: &'static str },
    /// No tensors.
    #[error("the adapter holds no tensors")]
    Empty,
    /// The adapter was made for another architecture.
    #[error("the adapter is for {found} models; this is a {expected} model")]
    Architecture { expected: String, found: String },
    /// The target tensor is missing in the model: its layer is beyond the last, or shares the
    /// tensor with another layer.
    #[error("tensor {name} changes {target}, which this {architecture} model does not have")]
    NoTarget { name: String, target: String, architecture: &'static str },
    /// The factors do not fit into the memory beside the weights.
    #[error("the adapter needs {needed} of memory; {device} has {available} free")]
    TooLarge { device: String, needed: Size, available: Size },
    /// A scale that is NaN or infinite.
    #[error("the adapter's scale {found} is not finite")]
    Scale { found: f32 },
    /// The adapter was loaded for another [`Model`](crate::Model) than the session's.
    #[error("the adapter was loaded for another model")]
    OtherModel,
}

impl AdapterError {
    /// Adds the adapter's path to the error.
    pub(super) fn at(self, path: impl Into<PathBuf>) -> Self {
        match self {
            Self::In { .. } => self,
            error => Self::In { path: path.into(), error: Box::new(error) },
        }
    }
}
