//! Switches of plans for tests and for the project's own tools.

use crate::plan::{PlanOptions, Precision};

/// What tests ask of a plan beside the options of every program.
pub trait Switches: Sized {
    /// F32 activations, and no kernel compiled for its params.
    #[must_use]
    fn plain() -> Self;

    /// Compiles the kernels of a plan of few rows for their params.
    #[must_use]
    fn specialize(self, specialize: bool) -> Self;

    /// Rounds to f16 only, where activations are rounded.
    #[must_use]
    fn halves(self) -> Self;

    /// Runs every operation as it was recorded.
    #[must_use]
    fn unfused(self, unfused: bool) -> Self;

    /// Uses portable shaders only, whatever the device can do.
    #[must_use]
    fn portable(self, portable: bool) -> Self;

    /// Leaves room behind every intermediate, so that [`crate::Plan::overrun_async`] shows writes
    /// past its end.
    #[must_use]
    fn guarded(self, guarded: bool) -> Self;
}

impl Switches for PlanOptions {
    fn plain() -> Self {
        Self { precision: Precision::F32, specialize: false, ..Self::default() }
    }

    fn specialize(self, specialize: bool) -> Self {
        Self { specialize, ..self }
    }

    fn halves(self) -> Self {
        Self { halves: true, ..self }
    }

    fn unfused(self, unfused: bool) -> Self {
        Self { unfused, ..self }
    }

    fn portable(self, portable: bool) -> Self {
        Self { portable, ..self }
    }

    fn guarded(self, guarded: bool) -> Self {
        Self { guarded, ..self }
    }
}
