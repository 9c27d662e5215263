//! Adapters on an executor, and a model's weights together with its active adapters.

use super::AdapterError;
use crate::left_out::LeftOut;
use crate::memory::available;
use crate::note::Note;
use crate::size::Size;
use kernels::{LowRank, Recorder, Weight, Weights};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The use of a weight that factors change.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// To products with the weight.
    ToProducts,
    /// To rows that are looked up in it. The factor A is transposed.
    ToRows,
}

impl Added {
    /// Adds factors to a weight in the operations that follow in a recording.
    pub fn adapt(self, rec: &mut Recorder, weight: Weight, with: LowRank) {
        match self {
            Self::ToProducts => rec.adapt(weight, with),
            Self::ToRows => rec.adapt_rows(weight, with),
        }
    }
}

/// The pairs of an adapter on an executor. The factors' handles belong to `weights`, the targets'
/// handles to the model's weights.
pub(crate) struct Factors {
    pub weights: Weights,
    pub pairs: Vec<(Weight, Added, LowRank)>,
    pub left_out: LeftOut,
}

impl Factors {
    /// What is left out, if anything is.
    pub fn note(&self) -> Option<Note> {
        Note::of_factors(&self.left_out)
    }
}

impl Note {
    /// The note on factors that are left out; `None` if all factors apply.
    pub(crate) fn of_factors(left_out: &LeftOut) -> Option<Self> {
        (!left_out.is_empty()).then(|| Self::LeftOut { left_out: left_out.clone() })
    }
}

/// An adapter that is loaded for a [`Model`](crate::Model). Any of the model's sessions can apply
/// it. Its memory is freed when its last user drops it.
pub struct Adapter {
    path: Option<PathBuf>,
    pub(crate) digest: [u8; 32],
    factors: Factors,
    /// The model's weights that it was loaded for.
    base: Weak<Weights>,
}

impl Adapter {
    /// The factors of the file at `path` with this digest, loaded for `base`.
    pub(crate) fn new(path: Option<&Path>, digest: [u8; 32], factors: Factors, base: &Arc<Weights>) -> Self {
        Self { path: path.map(Path::to_path_buf), digest, factors, base: Arc::downgrade(base) }
    }

    /// The path that it was opened from.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Bytes of factors on the executor.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.factors.weights.bytes()
    }

    /// Number of linear layers that it changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.factors.pairs.len()
    }

    /// What was left out of its file, if not all factors apply.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        self.factors.note()
    }

    /// Always false: an adapter without factors is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.factors.pairs.is_empty()
    }
}

/// An active adapter and its strength. `scale` multiplies the adapter's own scale; 0 turns the
/// adapter off.
#[derive(Clone)]
pub struct Applied {
    pub adapter: Arc<Adapter>,
    pub scale: f32,
}

impl PartialEq for Applied {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.adapter, &other.adapter) && self.scale == other.scale
    }
}

/// The weights that steps compute with: the model's, then the active adapters', and a list of which
/// factors are added to which weight.
#[derive(Clone)]
pub(crate) struct Adapted {
    pub weights: Arc<Weights>,
    pub additions: Vec<(Weight, Added, LowRank)>,
}

impl Adapted {
    /// The weights alone.
    pub fn none(base: &Arc<Weights>) -> Self {
        Self { weights: Arc::clone(base), additions: vec![] }
    }

    /// The weights with these adapters.
    pub fn with(base: &Arc<Weights>, adapters: &[Applied]) -> Result<Self, AdapterError> {
        let mut adapted = Self::none(base);
        for Applied { adapter, scale } in adapters {
            if !std::ptr::eq(adapter.base.as_ptr(), Arc::as_ptr(base)) {
                return Err(AdapterError::OtherModel);
            }
            adapted.add(&adapter.factors, *scale)?;
        }
        Ok(adapted)
    }

    /// Adds one adapter.
    pub fn add(&mut self, factors: &Factors, scale: f32) -> Result<(), AdapterError> {
        if !scale.is_finite() {
            return Err(AdapterError::Scale { found: scale });
        }
        if scale == 0.0 {
            return Ok(());
        }
        let found = factors.pairs.iter().map(|(_, _, with)| with.scale * scale).find(|product| !product.is_finite());
        if let Some(found) = found {
            return Err(AdapterError::Scale { found });
        }
        let moved = Arc::make_mut(&mut self.weights).append(&factors.weights);
        let added = |&(w, to, LowRank { a, b, scale: own }): &(Weight, Added, LowRank)| {
            (w, to, LowRank { a: moved(a), b: moved(b), scale: own * scale })
        };
        self.additions.extend(factors.pairs.iter().map(added));
        Ok(())
    }
}

/// Refuses an adapter that does not fit into the free memory.
pub(crate) fn fit(bytes: u64, executor: &kernels::Executor) -> Result<(), AdapterError> {
    match available(executor) {
        Some(available) if available < bytes => {
            Err(AdapterError::TooLarge { device: executor.name(), needed: Size(bytes), available: Size(available) })
        }
        _ => Ok(()),
    }
}
