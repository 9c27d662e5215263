//! The errors of this crate.

pub use crate::size::Size;
use gguf::shape_text;

/// An error of loading a model or of running it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The GGUF file is broken, or a key is missing or has another type.
    #[error(transparent)]
    File(#[from] gguf::Error),
    /// The file has an architecture that this version does not run.
    #[error(
        "architecture \"{}\" is not supported; this version runs {}",
        name.escape_debug(), known.join(", ")
    )]
    Architecture { name: String, known: Vec<&'static str> },
    /// A hyper-parameter is out of range.
    #[error("key {key}: {found} is not {expected}")]
    Parameter { key: String, expected: String, found: String },
    /// The file asks for a rope scaling that this version does not compute.
    #[error(
        "rope scaling \"{}\" is not supported; this version computes none, linear and yarn",
        name.escape_debug()
    )]
    RopeScaling { name: String },
    /// A tensor that the architecture needs is not in the file.
    #[error("tensor {name} is missing; the file is incomplete or not a {architecture} model")]
    TensorMissing { name: String, architecture: &'static str },
    /// The shape of a tensor does not match the hyper-parameters. Shapes are [rows, columns].
    #[error(
        "tensor {name} has the shape {}, but the hyper-parameters \
         need {}",
        shape_text(found),
        shape_text(expected)
    )]
    TensorShape { name: String, expected: Vec<u64>, found: Vec<u64> },
    /// A tensor has a value that is not allowed for it.
    #[error("tensor {name} has the value {found}, but needs {expected}")]
    TensorValue { name: String, expected: &'static str, found: f32 },
    /// A linear layer has a type that cannot become that of the base.
    #[error(
        "tensor {name} is {ty}, and {base} is made of F16, BF16 or F32; load this file without an \
         NF4 base, or take a file that is not quantized"
    )]
    BaseType { name: String, ty: gguf::GgmlType, base: gguf::GgmlType },
    /// A linear layer has rows that are not whole blocks of the base's type.
    #[error(
        "tensor {name} has rows of {cols} elements, and blocks of {base} have {}; load this file \
         {}",
        base.block_size(),
        if *base == gguf::GgmlType::NF4 { "without an NF4 base" } else { "with an NF4 base, or without one" }
    )]
    BaseRow { name: String, cols: u32, base: gguf::GgmlType },
    /// The vocabulary and the embedding have different sizes.
    #[error("the vocabulary has {tokens} tokens, but token_embd.weight has {rows} rows")]
    Vocabulary { tokens: usize, rows: u32 },
    /// A session asks for a value that the model does not name.
    #[error(
        "no value of this model is called \"{}\"; it names {}",
        name.escape_debug(), known.join(", ")
    )]
    Tap { name: String, known: Vec<&'static str> },
    /// Weights, KV cache and intermediates do not fit into memory.
    #[error(
        "not enough memory: {needed} are needed, and {device} has {available} (weights {weights}, \
         KV cache of {context} positions {kv}, intermediates {intermediates}); {}",
        smaller(*weights, *available)
    )]
    TooLarge {
        device: String,
        available: Size,
        needed: Size,
        weights: Size,
        kv: Size,
        intermediates: Size,
        context: u32,
    },
    /// The keys of one layer are larger than the largest buffer binding of the device.
    #[error(
        "the keys of one layer need {bytes} for {context} positions, but this device can bind \
         at most {limit}; lower the context length or choose the KV type f16 or q8_0"
    )]
    CacheTooLarge { context: u32, bytes: Size, limit: Size },
    /// The context length is 0 or more than the limit.
    #[error("the context length {asked} is not between 1 and {limit}, the limit of {of}")]
    Context { asked: usize, limit: usize, of: &'static str },
    /// The context is full.
    #[error(
        "the context is full: it has {limit} positions, and {needed} are needed; \
         raise the context length or start a new chat"
    )]
    ContextOverflow { needed: usize, limit: usize },
    /// A token id is not in the vocabulary.
    #[error("token id {id} is outside the vocabulary of {vocabulary} tokens")]
    TokenId { id: u32, vocabulary: u32 },
    /// Generation needs a token, and none was fed.
    #[error(
        "the prompt is empty: generation needs at least one token, such as the \
         beginning-of-text token"
    )]
    NothingFed,
    /// A step computed logits that are not finite. `sequence` is 0 outside batches. `cause` is the
    /// operation whose results are the first that are not finite.
    #[cfg(feature = "gpu")]
    #[error(
        "the logits at position {position} are not finite{}; the weights or the device are damaged",
        began(cause.as_deref())
    )]
    NonFinite { sequence: u32, position: usize, cause: Option<Box<kernels::NotFinite>> },
    /// A session or batch was to continue with the weights of another file.
    #[cfg(feature = "gpu")]
    #[error("the weights are of another model than the tokens of this conversation")]
    OtherModel,
    /// The caller set the cancel flag. Tokens that were generated before stay in the session.
    #[error("cancelled")]
    Cancelled,
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Snapshot(#[from] crate::snapshot::SnapshotError),
    #[error(transparent)]
    Tokenizer(#[from] crate::tokenizer::TokenizerError),
    #[error(transparent)]
    Chat(#[from] crate::chat::ChatError),
    #[error(transparent)]
    Ollama(#[from] crate::ollama::OllamaError),
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Adapter(#[from] crate::adapter::AdapterError),
    /// The executor failed.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Kernels(kernels::Error),
}

/// The advice for a model that does not fit into memory.
fn smaller(weights: Size, available: Size) -> &'static str {
    match weights < available {
        true => "lower the context length or choose the KV type f16 or q8_0",
        false => "choose a file of a smaller quantization or another device",
    }
}

/// Largest number of characters of the reason why JSON is wrong.
const MOST_OF_REASON: usize = 200;

/// The reason why JSON is wrong, shortened. An error of `serde_json` quotes the text that it found,
/// and a hostile file can make that very long. The line and column stay.
pub(crate) fn json_reason(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    match reason.char_indices().nth(MOST_OF_REASON) {
        Some((end, _)) => format!("{}.. at line {} column {}", &reason[..end], error.line(), error.column()),
        None => reason,
    }
}

#[cfg(feature = "gpu")]
impl From<kernels::Error> for Error {
    fn from(error: kernels::Error) -> Self {
        match error {
            kernels::Error::Cancelled => Self::Cancelled,
            kernels::Error::Read(error) => Self::File(error),
            kernels::Error::ContextOverflow { needed, capacity } => Self::ContextOverflow { needed, limit: capacity },
            other => Self::Kernels(other),
        }
    }
}

/// Where the first value that is not finite comes from, as a part of a sentence.
#[cfg(feature = "gpu")]
fn began(cause: Option<&kernels::NotFinite>) -> String {
    cause.map_or_else(String::new, |cause| format!(": it begins in {cause}"))
}
