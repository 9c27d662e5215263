//! What every architecture provides: the facts about its model, and its forward pass.

use kernels::{KvState, Recorder, Tensor};

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
