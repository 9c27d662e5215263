//! The architectures: one file each, to be read from top to bottom. They share the kernels'
//! operations and `head.rs` (token embedding and logits).

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
use crate::plans::ring_rows;
use crate::session::SessionOptions;
use cpu_ref::KvType;
use gguf::Gguf;
use kernels::{KvState, Recorder, StateKind, Tensor};

pub use head::{Head, embed_tokens, logits, rows_for};

/// Which rows get logits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Logits {
    /// The rows that the step names.
    Rows,
    /// Every row of the step.
    All,
}

/// Facts about a model that every architecture provides.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub architecture: &'static str,
    pub block_count: u32,
    pub context_length: u32,
    pub embedding_length: u32,
    pub vocabulary: u32,
    /// The KV caches of the model. A cache's index here is its index in `Architecture::forward`.
    /// Layers that share keys and values use one cache.
    pub caches: Vec<Cache>,
}

impl Summary {
    /// Whether a layer takes keys and values from an earlier layer. Layers with a cache of their
    /// own come first.
    #[must_use]
    pub fn shares_keys(&self, layer: u32) -> bool {
        (self.caches.len()..self.block_count as usize).contains(&(layer as usize))
    }
}

/// The KV cache of one layer, and of the layers that share its keys and values.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cache {
    /// Elements of a key (and of a value) per position.
    pub width: u32,
    /// Positions that a row attends to, its own included; `None` for all.
    pub window: Option<u32>,
}

/// A model whose weights are loaded. It records its forward pass.
pub(crate) trait Architecture: Send + Sync {
    /// The model's dimensions.
    fn summary(&self) -> &Summary;
    /// Records one step over the caches `kv`, which are in the order of [`Summary::caches`], and
    /// returns the logits of the rows that `rows` asks for.
    fn forward(&self, rec: &mut Recorder, kv: &[KvState], rows: Logits) -> Tensor;
}

/// Reads the hyper-parameters, then loads every tensor. With dry weights it only checks the
/// tensors.
type Load = fn(&Gguf, &mut Loader<'_>) -> Result<Box<dyn Architecture>, Error>;

/// The architectures, by their name in GGUF files.
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

/// The name and the loader of a file's architecture.
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

/// The states of a model: the token ids so far, then the keys and the values of each cache. A cache
/// with a window is a ring.
#[must_use]
pub fn states(summary: &Summary, options: &SessionOptions) -> Vec<StateKind> {
    let ring = |cache: &Cache| cache.window.map(|window| ring_rows(window, options));
    let kv = |cache: &Cache| [StateKind::Kv { ty: options.kv, width: cache.width, ring: ring(cache) }; 2];
    std::iter::once(StateKind::Tokens).chain(summary.caches.iter().flat_map(kv)).collect()
}

/// The states of a model in recordings of documents, which neither write nor read them.
pub(crate) fn document_states(summary: &Summary) -> Vec<StateKind> {
    states(summary, &SessionOptions { kv: KvType::F32, ..SessionOptions::default() })
}

/// The handles of the keys and values in [`states`], one pair per cache.
#[must_use]
pub fn kv_states(rec: &Recorder, caches: usize) -> Vec<KvState> {
    (0..caches).map(|l| KvState::new(rec.state(1 + 2 * l), rec.state(2 + 2 * l))).collect()
}
