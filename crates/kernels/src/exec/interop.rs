//! The wgpu buffers of weights, states and results, behind the feature `interop`.
//!
//! All of them may be bound as read-only storage or copied from. Whoever writes to them breaks what
//! plans rely on.

use super::states::{States, Store};
use super::weights::Weights;
use super::{Compiled, Plan};
use crate::graph::tensor::{Place, State, Weight};

impl Weights {
    /// The buffers of a weight on a GPU: several where one binding cannot hold it. Rows are laid
    /// out as its format's kernels read them. For F32, F16, Q4_K and some more formats, this is the
    /// file's layout.
    ///
    /// None on the CPU, and for a weight that is a state.
    #[must_use]
    pub fn wgpu_buffers(&self, weight: Weight) -> Option<Vec<&wgpu::Buffer>> {
        match weight.place {
            Place::Loaded(n) => Some(self.buffers(n)?.iter().map(|buffer| &**buffer).collect()),
            Place::State(_) => None,
        }
    }
}

impl States {
    /// The buffer of a state on a GPU: [sequences, rows] rows, in the state's own type. A state
    /// that grows gets another buffer, so ask again after each step.
    #[must_use]
    pub fn wgpu_buffer(&self, state: State) -> Option<&wgpu::Buffer> {
        match &self.store {
            Store::Gpu(_, buffers) => buffers.get(state.0 as usize).map(|buffer| &**buffer),
            Store::Cpu(_) => None,
        }
    }
}

impl Plan {
    /// The buffer of the n-th result on a GPU, f32 or u32 words from its first byte on: outputs in
    /// their order, then the taps that were asked for. Its values are those of the last run that
    /// was submitted.
    #[must_use]
    pub fn wgpu_buffer(&self, n: usize) -> Option<&wgpu::Buffer> {
        match &self.0 {
            Compiled::Gpu(plan) => plan.result(n),
            Compiled::Cpu(_) => None,
        }
    }
}
