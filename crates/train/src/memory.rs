//! The memory that gradients need, computed before anything is allocated.

use kernels::plan::{host_bytes, plan};
use kernels::{Error, Executor, PlanOptions, Recorder};

/// Bytes in parts.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The model's weights, as they lie in the file.
    pub weights: u64,
    /// Trained tensors in f32.
    pub parameters: u64,
    /// The gradients of trained tensors.
    pub gradients: u64,
    /// The moments of gradients that an optimizer keeps.
    pub moments: u64,
    /// Values of the forward pass that wait for the backward pass, and results.
    pub saved: u64,
    /// Other values between operations, and the inputs of steps.
    pub scratch: u64,
    /// What steps of validation need beside: on a GPU they have a plan of their own.
    pub validation: u64,
}

impl Memory {
    /// The sum.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.weights + self.parameters + self.gradients + self.moments + self.saved + self.scratch + self.validation
    }

    /// The need for a recording, whose values are as large as its capacity. `parameters` and
    /// `moments` are bytes.
    pub(crate) fn of(
        rec: &Recorder,
        [parameters, moments]: [u64; 2],
        executor: &Executor,
        weights: u64,
        options: &PlanOptions,
    ) -> Result<Self, Error> {
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
        Ok(Self { weights, parameters, gradients: parameters, moments, saved, scratch, validation: 0 })
    }
}

/// The need of a recording of steps of validation. On the CPU their values take the place of those
/// of gradients, which are more.
pub(crate) fn of_validation(rec: &Recorder, executor: &Executor, options: &PlanOptions) -> Result<u64, Error> {
    let Executor::Gpu(device) = executor else { return Ok(0) };
    let planned = plan(rec, device.caps(), options)?;
    Ok(planned.intermediate_bytes() + planned.exchange_bytes())
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let Self { weights, parameters, gradients, moments, saved, scratch, validation } = *self;
        let [all, weights, parameters, gradients] = [self.total(), weights, parameters, gradients].map(mb);
        write!(f, "{all:.1} MB: weights {weights:.1}, trained {parameters:.1}, gradients {gradients:.1}, ")?;
        if moments > 0 {
            write!(f, "moments {:.1}, ", mb(moments))?;
        }
        write!(f, "saved values {:.1}, scratch {:.1}", mb(saved), mb(scratch))?;
        if validation > 0 {
            write!(f, ", validation {:.1}", mb(validation))?;
        }
        Ok(())
    }
}
