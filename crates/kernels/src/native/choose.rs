//! Where to run: slices that live on the host by their length, models by what their steps cost.

mod crossover;
mod rates;

use crate::Recorder;
use crate::caps::Class;
use crate::device::Device;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::graph::operation::Work;
pub use crossover::{Crossover, GPU_MIN_SIZE, should_use_gpu};
pub use rates::Rates;
use std::fmt;

/// What a model asks of an executor: one step of one row, and all its weights.
#[derive(Copy, Clone, Debug)]
pub struct Demand {
    pub work: Work,
    /// Operations of the step, each a dispatch or more.
    pub operations: usize,
    /// Weights and states that stay allocated.
    pub resident_bytes: u64,
}

impl Demand {
    /// Of a recording for one row.
    #[must_use]
    pub fn of(rec: &Recorder, resident_bytes: u64) -> Self {
        Self { work: rec.work(), operations: rec.nodes.len(), resident_bytes }
    }
}

/// Why an executor was chosen; printed, a clause for people.
#[derive(Debug)]
pub enum Because {
    /// The GPU will be done sooner.
    Faster,
    /// The CPU is done before a GPU has started.
    Small,
    NoAdapter,
    Software {
        adapter: String,
    },
    TooLarge {
        needed_bytes: u64,
        available_bytes: u64,
    },
    Refused(Error),
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faster => write!(f, "the GPU is faster for this model"),
            Self::Small => write!(f, "the model is so small that the CPU is done before a GPU has started"),
            Self::NoAdapter => write!(f, "no GPU was found"),
            Self::Software { adapter } => write!(f, "{adapter} is software, not a GPU"),
            Self::TooLarge { needed_bytes, available_bytes } => {
                write!(f, "the model needs {needed_bytes} bytes and the GPU has {available_bytes} left")
            }
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

/// An executor with the reason for it.
#[derive(Debug)]
pub struct Chosen {
    pub executor: Executor,
    pub because: Because,
}

/// Steps of the session that is weighed: a question and its answer.
const STEPS: f64 = 256.0;

/// Opening a device and compiling pipelines, seconds.
const GPU_START_S: f64 = 0.5;

/// Operations per second of the oracles on one thread: 0.3 to 0.6 10^9 where it was measured, with weights of any type.
const CPU_FLOP_PER_S: f64 = 0.5e9;

fn cpu_seconds(demand: &Demand, threads: usize) -> f64 {
    STEPS * demand.work.flops as f64 / (CPU_FLOP_PER_S * threads.max(1) as f64)
}

fn gpu_seconds(demand: &Demand, rates: &Rates) -> f64 {
    let step = rates.round_trip_s + rates.dispatch_s * demand.operations as f64 + demand.work.bytes as f64 / rates.product_bytes_per_s();
    GPU_START_S + STEPS * step
}

/// The verdict on a device that answers: `Faster`, or why not.
fn verdict(demand: &Demand, adapter: &crate::AdapterSummary, rates: &Rates, available_bytes: Option<u64>, threads: usize) -> Because {
    let (needed_bytes, class) = (demand.resident_bytes, adapter.class);
    match available_bytes {
        _ if class == Class::Software => Because::Software { adapter: adapter.name.clone() },
        Some(available_bytes) if needed_bytes > available_bytes => Because::TooLarge { needed_bytes, available_bytes },
        _ if cpu_seconds(demand, threads) <= gpu_seconds(demand, rates) => Because::Small,
        _ => Because::Faster,
    }
}

impl Executor {
    /// The best GPU, or the CPU where none answers or only a software one does: for whoever has no [`Demand`] to weigh.
    #[must_use]
    pub fn best() -> Self {
        match Device::auto() {
            Ok(device) if device.adapter().class != Class::Software => Self::Gpu(device),
            _ => Self::Cpu,
        }
    }

    /// The executor for a whole session: the best GPU under the limits that `WEFT_LIMITS` asks for, unless none answers, only a
    /// software one does, the model does not fit, or the CPU is done before a GPU has started.
    #[must_use]
    pub fn auto(demand: &Demand) -> Chosen {
        Self::auto_with(demand, |_| None)
    }

    /// The same by the rates that were measured of a device, where `known` has any; they count for [`should_use_gpu`] as well.
    #[must_use]
    pub fn auto_with(demand: &Demand, known: impl FnOnce(&Device) -> Option<Rates>) -> Chosen {
        let threads = rayon::current_num_threads();
        let cpu = |because| Chosen { executor: Self::Cpu, because };
        if cpu_seconds(demand, threads) <= GPU_START_S {
            return cpu(Because::Small);
        }
        match Device::auto() {
            Err(Error::NoAdapter { .. }) => cpu(Because::NoAdapter),
            Err(error) => cpu(Because::Refused(error)),
            Ok(device) => {
                let (adapter, rates) = (device.adapter(), known(&device));
                rates.iter().for_each(|rates| rates.crossover.apply());
                let rates = rates.unwrap_or_else(|| Rates::modest(adapter.class));
                match verdict(demand, adapter, &rates, device.memory().map(|m| m.available_bytes), threads) {
                    Because::Faster => Chosen { executor: Self::Gpu(device), because: Because::Faster },
                    because => cpu(because),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AdapterSummary;

    fn demand(weights: u64) -> Demand {
        let work = Work { flops: 2 * weights, bytes: weights / 2, weight_bytes: weights / 2 };
        Demand { work, operations: 400, resident_bytes: weights / 2 }
    }

    fn adapter(class: Class) -> AdapterSummary {
        AdapterSummary { name: "a".to_string(), class, backend: String::new(), driver: String::new() }
    }

    #[test]
    fn software_adapters_never_run_models() {
        let because = verdict(&demand(8_000_000_000), &adapter(Class::Software), &Rates::modest(Class::Software), None, 1);
        assert!(matches!(because, Because::Software { .. }), "{because:?}");
    }

    #[test]
    fn models_that_fit_run_on_hardware_and_those_that_do_not_stay() {
        for class in [Class::Discrete, Class::Integrated, Class::Virtual, Class::Unknown] {
            for weights in [500_000_000, 8_000_000_000] {
                let of = |available| verdict(&demand(weights), &adapter(class), &Rates::modest(class), available, 16);
                assert!(matches!(of(None), Because::Faster) && matches!(of(Some(weights / 2)), Because::Faster), "{class:?}");
                assert!(matches!(of(Some(weights / 2 - 1)), Because::TooLarge { .. }), "{class:?}");
            }
        }
    }

    #[test]
    fn a_tiny_model_never_opens_a_device() {
        let chosen = Executor::auto(&demand(100_000));
        assert!(matches!((&chosen.executor, &chosen.because), (Executor::Cpu, Because::Small)), "{chosen:?}");
    }

    #[test]
    fn more_threads_keep_larger_models_on_the_cpu() {
        let rates = Rates::modest(Class::Discrete);
        let of = |threads| verdict(&demand(4_000_000), &adapter(Class::Discrete), &rates, None, threads);
        assert!(matches!((of(1), of(64)), (Because::Faster, Because::Small)));
    }

    #[test]
    fn a_device_that_was_measured_is_judged_by_that() {
        let modest = Rates::modest(Class::Discrete);
        let of = |rates: &Rates| verdict(&demand(500_000_000), &adapter(Class::Discrete), rates, None, 16);
        assert!(matches!(of(&modest), Because::Faster));
        assert!(matches!(of(&Rates { read_bytes_per_s: 1e9, ..modest }), Because::Small), "a slow memory");
        assert!(matches!(of(&Rates { dispatch_s: 1e-3, ..modest }), Because::Small), "slow dispatches");
        assert!(matches!(of(&Rates { round_trip_s: 1.0, ..modest }), Because::Small), "slow answers");
    }
}
