//! The architectures: one file each, read top to bottom. They share operations, and both ends (`head.rs`).

mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod head;
mod qwen2;
mod qwen2moe;
mod qwen3;
mod qwen3moe;

use crate::error::Error;
use crate::load::Loader;
use crate::runner::ring_rows;
use crate::session::SessionOptions;
use gguf::Gguf;
use kernels::{KvState, Recorder, StateKind, Tensor};

pub use head::{Head, embed_tokens, logits, rows_for};

/// Which rows get logits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Logits {
    /// Those that the step names.
    Rows,
    /// Every row of the step.
    All,
}

/// What every architecture tells about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub architecture: &'static str,
    pub block_count: u32,
    pub context_length: u32,
    pub embedding_length: u32,
    pub vocabulary: u32,
    /// The caches of keys and values. Layers that share one name the same; see `Architecture::forward`.
    pub caches: Vec<Cache>,
}

/// The keys and values of one layer, and of those that share them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cache {
    /// Elements of a key (and of a value) per position.
    pub width: u32,
    /// Positions that a row sees, its own included; `None` for all.
    pub window: Option<u32>,
}

/// A model whose weights are loaded: it records its forward pass.
pub(crate) trait Architecture: Send + Sync {
    /// Its dimensions.
    fn summary(&self) -> &Summary;
    /// Records one step over its caches, in the order of [`Summary::caches`], and returns the logits of these rows.
    fn forward(&self, rec: &mut Recorder, kv: &[KvState], rows: Logits) -> Tensor;
}

/// Reads hyper-parameters, then loads (or, over dry weights, checks) every tensor.
type Load = fn(&Gguf, &mut Loader<'_>) -> Result<Box<dyn Architecture>, Error>;

/// The architectures by the name that files give.
const KNOWN: &[(&str, Load)] = &[
    ("gemma2", gemma2::load),
    ("gemma3", gemma3::load),
    ("gemma3n", gemma3n::load),
    ("gemma4", gemma4::load),
    ("qwen2", qwen2::load),
    ("qwen2moe", qwen2moe::load),
    ("qwen3", qwen3::load),
    ("qwen3moe", qwen3moe::load),
];

/// The entry of the table for a file.
pub(crate) fn find(file: &Gguf) -> Result<(&'static str, Load), Error> {
    let name = file.architecture()?;
    let known = KNOWN.iter().find(|(n, _)| *n == name).copied();
    known.ok_or_else(|| Error::Architecture { name: name.to_string(), known: names() })
}

/// The names of all architectures.
#[must_use]
pub fn names() -> Vec<&'static str> {
    KNOWN.iter().map(|(n, _)| *n).collect()
}

/// The states of a model: the ids said so far, then keys and values of every cache, in rings where there is a window.
#[must_use]
pub fn states(summary: &Summary, options: &SessionOptions) -> Vec<StateKind> {
    let ring = |cache: &Cache| cache.window.map(|window| ring_rows(window, options));
    let kv = |cache: &Cache| [StateKind::Kv { ty: options.kv, width: cache.width, ring: ring(cache) }; 2];
    std::iter::once(StateKind::Tokens).chain(summary.caches.iter().flat_map(kv)).collect()
}

/// Cache by cache, the handles of [`states`].
#[must_use]
pub fn kv_states(rec: &Recorder, caches: usize) -> Vec<KvState> {
    (0..caches).map(|l| KvState::new(rec.state(1 + 2 * l), rec.state(2 + 2 * l))).collect()
}
