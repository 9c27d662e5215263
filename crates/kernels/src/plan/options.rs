//! What a plan is asked for.

use crate::matmul::problem::Rounds;

/// How activations are kept on the way through a model on a GPU.
///
/// The CPU executor computes in f32 (with f64 sums) whatever is asked.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Rounded where that is faster. Products of a few rows with quantized weights read activations
    /// of 8 bits. Products of many rows read f16 with a scale for each row where the device has
    /// cooperative matrices, and 8 bits on other hardware.
    #[default]
    Fast,
    /// Never rounded: the numbers that other implementations give.
    F32,
}

/// What a plan is asked for: by default the fastest plan for a model.
///
/// ```
/// use kernels::{PlanOptions, Precision};
/// let options = PlanOptions::default().precision(Precision::F32).taps(vec!["layer_out".into()]);
/// assert_eq!(options.precision, Precision::F32);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanOptions {
    /// Names of taps to read back. A tap that is asked for ends a fusion there.
    pub taps: Vec<String>,
    /// Whether activations are rounded.
    pub precision: Precision,
    /// Sequences that the states hold; 0 where the plan is for any number.
    pub sequences: u32,
    /// Compile the kernels of a plan of few rows for their params and, where the states hold one
    /// sequence, for one sequence. Such a plan has more pipelines with less code in each.
    pub(crate) specialize: bool,
    /// Run every operation as it was recorded.
    pub(crate) unfused: bool,
    /// Where activations are rounded, round them to f16 only, for tiles of 16 rows and more.
    pub(crate) halves: bool,
    /// Submit every layer by itself, so that a run can be cancelled between any two.
    pub(crate) every_layer: bool,
    /// Use portable shaders only, whatever the device can do.
    pub(crate) portable: bool,
    /// Leave room behind every intermediate, so that [`crate::Plan::overrun`] shows writes past its
    /// end.
    pub(crate) guarded: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            taps: vec![],
            precision: Precision::Fast,
            sequences: 0,
            specialize: true,
            unfused: false,
            halves: false,
            every_layer: false,
            portable: false,
            guarded: false,
        }
    }
}

impl PlanOptions {
    /// Names of taps to read back.
    #[must_use]
    pub fn taps(self, taps: Vec<String>) -> Self {
        Self { taps, ..self }
    }

    /// Whether activations are rounded.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// Sequences that the states hold; 0 where the plan is for any number.
    #[must_use]
    pub fn sequences(self, sequences: u32) -> Self {
        Self { sequences, ..self }
    }

    /// Exact plans for training: activations are never rounded, and every operation runs as it was
    /// recorded. So a value has the same bits whoever reads it, and computing it again changes
    /// nothing. Every layer is a submit.
    ///
    /// With [`Precision::Fast`], products of 16 rows and more, their derivatives and those of
    /// attention read f16, gradients with a power of two for each row, where the device has
    /// cooperative matrices. Exact products and their derivatives are not rounded. Values between
    /// operations stay f32, and their bits still do not depend on their readers. Nothing is rounded
    /// on other devices: training never rounds to 8 bits.
    #[must_use]
    pub fn training() -> Self {
        Self {
            precision: Precision::F32,
            specialize: false,
            unfused: true,
            halves: true,
            every_layer: true,
            ..Self::default()
        }
    }

    pub(crate) fn fast(&self) -> bool {
        self.precision == Precision::Fast
    }

    /// How far products round their operands.
    pub(crate) fn rounds(&self) -> Rounds {
        match (self.precision, self.halves) {
            (Precision::F32, _) => Rounds::Never,
            (Precision::Fast, true) => Rounds::Halves,
            (Precision::Fast, false) => Rounds::Freely,
        }
    }
}

/// Plans of this crate's own.
#[allow(dead_code, reason = "a browser has no functions that block, which make such plans")]
impl PlanOptions {
    /// F32 activations, and no kernel compiled for its params.
    pub(crate) fn plain() -> Self {
        Self { precision: Precision::F32, specialize: false, ..Self::default() }
    }

    pub(crate) fn specialize(self, specialize: bool) -> Self {
        Self { specialize, ..self }
    }
}
