//! The memory that gradients need, computed before anything is allocated.

use crate::error::Error;
use kernels::plan::{host_bytes, plan};
use kernels::{Executor, PlanOptions, Recorder};

/// Bytes in parts.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The model's weights, as they lie in the file.
    pub weights: u64,
    /// Trained tensors in f32.
    pub parameters: u64,
    /// The gradients of trained tensors.
    pub gradients: u64,
    /// Values of the forward pass that wait for the backward pass, and results.
    pub saved: u64,
    /// Other values between operations, and the inputs of steps.
    pub scratch: u64,
}

impl Memory {
    /// The sum.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.weights + self.parameters + self.gradients + self.saved + self.scratch
    }

    /// The need for a recording, whose values are as large as its capacity.
    pub(crate) fn of(rec: &Recorder, executor: &Executor, weights: u64, parameters: u64, options: &PlanOptions) -> Result<Self, Error> {
        let (saved, scratch) = match executor {
            Executor::Cpu => {
                let [most, saved] = host_bytes(rec);
                (saved, most - saved)
            }
            Executor::Gpu(device) => {
                let planned = plan(rec, device.caps(), options)?;
                let saved = planned.kept_bytes();
                (saved, planned.intermediate_bytes() - saved + planned.exchange_bytes())
            }
        };
        Ok(Self { weights, parameters, gradients: parameters, saved, scratch })
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let Self { weights, parameters, gradients, saved, scratch } = *self;
        write!(
            f,
            "{:.1} MB: weights {:.1}, trained {:.1}, gradients {:.1}, saved values {:.1}, scratch {:.1}",
            mb(self.total()),
            mb(weights),
            mb(parameters),
            mb(gradients),
            mb(saved),
            mb(scratch)
        )
    }
}
