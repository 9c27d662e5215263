//! How a run is watched, and its results.

use crate::graph::record::Phase;
use gguf::PartReport;
use std::sync::atomic::AtomicBool;

/// How far a run is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub phase: Phase,
    /// Layers of this phase that are done; operations where each is compared by itself.
    pub done: u32,
    pub total: u32,
}

/// Observes a run: a flag that cancels it at the next submit, and a callback for progress.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    pub cancel: Option<&'a AtomicBool>,
    /// Called at the start and after each submit, with the layers of the phase; where each
    /// operation is compared by itself, with operations.
    pub progress: Option<PartReport<'a, Phase>>,
}

/// The results of a run: the words of every output and requested tap, in order.
#[derive(Clone, Debug, Default)]
pub struct Outputs(pub Vec<Vec<u32>>);

impl Outputs {
    /// The n-th result as f32.
    #[must_use]
    pub fn f32(&self, n: usize) -> &[f32] {
        bytemuck::cast_slice(&self.0[n])
    }
}
