//! Errors in an adapter.

use crate::left_out::LeftOut;
use crate::size::Size;
use gguf::shape_text;
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
    #[error("key {key} is \"{}\"; in an adapter it is \"{expected}\"", found.escape_debug())]
    Kind { key: &'static str, expected: &'static str, found: String },
    /// `adapter_config.json` lacks a field or has a bad one.
    #[error("adapter_config.json: {reason}")]
    Config { reason: String },
    /// A feature of PEFT or llama.cpp beyond LoRA of linear layers. `means` says in brackets what
    /// it is, if that is known; `out` is what the user can do.
    #[error(
        "{key} = {value} is not supported{means}: this version applies LoRA and rsLoRA without \
         biases or other weights; {out}"
    )]
    Feature { key: String, value: String, means: String, out: String },
    /// A tensor of a feature beyond LoRA of linear layers.
    #[error("tensor {name} is {what}; {out}")]
    Whole { name: String, what: &'static str, out: &'static str },
    /// An adapter of MLX.
    #[error(
        "this is an adapter of MLX, whose factors lie transposed under other names; fuse it into \
         its base with mlx_lm.fuse --dequantize, and convert the fused model with llama.cpp's \
         convert_hf_to_gguf.py"
    )]
    Mlx,
    /// A pickle of PyTorch.
    #[error(
        "this is a pickle of PyTorch, which may run any program when it is read; write \
         safetensors with PEFT: PeftModel.from_pretrained(base, folder).save_pretrained(folder)"
    )]
    Pickle,
    /// A tensor that is not a factor of a supported layer.
    #[error(
        "tensor {name} is not supported: adapters may change token_embd, output, \
         per_layer_model_proj, and {} of any layer",
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
    #[error("tensor {name} is {}; a factor must have rows and columns", shape_text(found))]
    Dimensions { name: String, found: Vec<u64> },
    /// A factor whose shape does not match its partner, the adapter's rank or the model.
    #[error("tensor {name} is {}, {wanted} {}", shape_text(found), shape_text(expected))]
    Shape { name: String, expected: [u32; 2], found: [u32; 2], wanted: &'static str },
    /// No tensors.
    #[error("the adapter holds no tensors")]
    Empty,
    /// The model has no use for any of the factors.
    #[error("no factor of the adapter applies: it has {left_out}")]
    NothingApplies { left_out: LeftOut },
    /// The adapter was made for another architecture.
    #[error("the adapter is for {found} models; this is a {expected} model")]
    Architecture { expected: String, found: String },
    /// The target tensor is missing in the model, for example because its layer is beyond the last.
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
