//! What can go wrong between a file and its text.

/// The errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The container itself is broken, or a key is missing or of another type.
    #[error(transparent)]
    File(#[from] gguf::Error),
    /// The file's architecture is none of ours.
    #[error("architecture {name:?} is not supported; this version runs {}", known.join(", "))]
    Architecture { name: String, known: Vec<&'static str> },
    /// A hyper-parameter is outside what a model can have.
    #[error("key {key}: {found} is not {expected}")]
    Parameter { key: String, expected: String, found: String },
    /// A scaling of rope that we do not compute.
    #[error("rope scaling {name:?} is not supported; this version computes none, linear and yarn")]
    RopeScaling { name: String },
    /// A tensor that the architecture needs is not in the file.
    #[error("tensor {name} is missing; the file is incomplete or not a {architecture} model")]
    TensorMissing { name: String, architecture: &'static str },
    /// A tensor disagrees with the hyper-parameters. Shapes are [rows, columns].
    #[error("tensor {name} is {found:?}, the hyper-parameters say {expected:?}")]
    TensorShape { name: String, expected: Vec<u64>, found: Vec<u64> },
    /// A tensor holds a number that its meaning excludes.
    #[error("tensor {name} has a value of {found}; expected are {expected}")]
    TensorValue { name: String, expected: &'static str, found: f32 },
    /// The vocabulary and the embedding disagree.
    #[error("the vocabulary has {tokens} tokens, token_embd.weight has {rows} rows")]
    Vocabulary { tokens: usize, rows: u32 },
    /// Weights, KV cache and intermediates do not fit.
    #[error(
        "{device} has {available} of memory for {needed}: weights {weights}, KV cache of {context} positions {kv}, \
         intermediates {intermediates}; {}", smaller(*weights, *available)
    )]
    TooLarge { device: String, available: Size, needed: Size, weights: Size, kv: Size, intermediates: Size, context: u32 },
    /// The keys of one layer are more than the device binds.
    #[error(
        "the keys of one layer take {bytes} at {context} positions, and this device binds {limit} at most; \
         lower --ctx or choose --kv f16 or q8_0"
    )]
    CacheTooLarge { context: u32, bytes: Size, limit: Size },
    /// More positions than the model was made for or than the session was given.
    #[error("a context of {asked} positions is more than the {limit} of {of}")]
    Context { asked: usize, limit: usize, of: &'static str },
    /// The session is full.
    #[error("the context is full: {needed} positions needed, {limit} given; raise --ctx or start anew")]
    ContextOverflow { needed: usize, limit: usize },
    /// An id that the vocabulary does not have.
    #[error("token id {id} is outside the vocabulary of {vocabulary}")]
    TokenId { id: u32, vocabulary: u32 },
    /// Generation was asked for before anything was fed.
    #[error("nothing was fed: generation needs at least one token, such as the beginning-of-text token")]
    NothingFed,
    /// A step made something that is not a number; `sequence` is 0 outside batches.
    #[error("the logits at position {position} are not finite; the weights or the file are damaged")]
    NonFinite { sequence: u32, position: usize },
    /// The caller's flag asked to stop; what was generated stays in the session.
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Snapshot(#[from] crate::snapshot::SnapshotError),
    #[error(transparent)]
    Tokenizer(#[from] crate::tokenizer::TokenizerError),
    #[error(transparent)]
    Chat(#[from] crate::chat::ChatError),
    #[cfg(not(target_arch = "wasm32"))]
    #[error(transparent)]
    Ollama(#[from] crate::ollama::OllamaError),
    #[error(transparent)]
    Adapter(#[from] crate::adapter::AdapterError),
    /// The executor failed.
    #[error(transparent)]
    Kernels(kernels::Error),
}

/// What to do about a model that does not fit.
fn smaller(weights: Size, available: Size) -> &'static str {
    match weights < available {
        true => "lower --ctx or choose --kv f16 or q8_0",
        false => "choose a file of a smaller quantization or another --device",
    }
}

/// Characters of what JSON is wrong for at most.
const MOST_OF_REASON: usize = 200;

/// What is wrong with JSON. Its own errors quote what they found, however long a hostile file made that; what follows, the place, stays.
pub(crate) fn json_reason(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    match reason.char_indices().nth(MOST_OF_REASON) {
        Some((end, _)) => format!("{}.. at line {} column {}", &reason[..end], error.line(), error.column()),
        None => reason,
    }
}

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

/// A number of bytes, printed with a unit.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} B", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kB", bytes / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", bytes / 1e6),
            _ => write!(f, "{:.2} GB", bytes / 1e9),
        }
    }
}
