//! Chooses between GPU and CPU: for host slices by their length, for models by the cost of a step.

mod crossover;
mod rates;

use crate::Recorder;
use crate::device::executor::Executor;
use crate::device::{Device, Limits, Select};
use crate::error::Error;
use crate::graph::operation::Work;
pub use crossover::{Crossover, GPU_MIN_SIZE, should_use_gpu};
pub use rates::Rates;
use std::fmt;

/// The cost of a model: the work of one step of one row, and the memory of its weights and states.
#[derive(Copy, Clone, Debug)]
pub struct Demand {
    pub work: Work,
    /// Number of operations in the step. Each is one or more dispatches.
    pub operations: usize,
    /// Weights and states that stay allocated.
    pub resident_bytes: u64,
}

impl Demand {
    /// The demand of a recording for one row.
    #[must_use]
    pub fn of(rec: &Recorder, resident_bytes: u64) -> Self {
        Self { work: rec.work(), operations: rec.nodes.len(), resident_bytes }
    }
}

/// The reason for the choice of an executor. `Display` writes it as a clause for the user.
#[derive(Debug)]
pub enum Because {
    /// The GPU will finish first.
    Faster,
    /// The CPU finishes first, because opening a GPU takes time.
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
            Self::Small => write!(f, "the model is so small that the CPU finishes before the GPU"),
            Self::NoAdapter => write!(f, "no GPU was found"),
            Self::Software { adapter } => write!(f, "{adapter} is a software adapter, not a GPU"),
            Self::TooLarge { needed_bytes, available_bytes } => {
                write!(f, "the model needs {needed_bytes} bytes and the GPU has {available_bytes} bytes free")
            }
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

/// The chosen executor and the reason for the choice.
#[derive(Debug)]
pub struct Chosen {
    pub executor: Executor,
    pub because: Because,
}

/// Steps of the assumed session: a question and its answer.
const STEPS: f64 = 256.0;

/// Seconds to open a device and compile pipelines.
const GPU_START_S: f64 = 0.5;

/// Floating-point operations per second of the oracles on one thread. Measured values were 0.3e9 to
/// 0.6e9, with weights of any type.
const CPU_FLOP_PER_S: f64 = 0.5e9;

fn cpu_seconds(demand: &Demand, threads: usize) -> f64 {
    STEPS * demand.work.flops as f64 / (CPU_FLOP_PER_S * threads.max(1) as f64)
}

fn gpu_seconds(demand: &Demand, rates: &Rates) -> f64 {
    let step = rates.round_trip_s
        + rates.dispatch_s * demand.operations as f64
        + demand.work.bytes as f64 / rates.product_bytes_per_s();
    GPU_START_S + STEPS * step
}

/// `Faster` if the model should run on this device, else the reason for the CPU.
fn verdict(demand: &Demand, rates: &Rates, available_bytes: Option<u64>, threads: usize) -> Because {
    let needed_bytes = demand.resident_bytes;
    match available_bytes {
        Some(available_bytes) if needed_bytes > available_bytes => Because::TooLarge { needed_bytes, available_bytes },
        _ if cpu_seconds(demand, threads) <= gpu_seconds(demand, rates) => Because::Small,
        _ => Because::Faster,
    }
}

impl Executor {
    /// The best GPU, or the CPU if there is no GPU or only a software adapter. For callers without
    /// a [`Demand`].
    #[must_use]
    pub fn best() -> Self {
        Device::open(&Select::Hardware, Limits::from_env()).map_or(Self::Cpu, Self::Gpu)
    }

    /// The executor for a whole session: the best GPU, with the limits from `WEFT_LIMITS`. It is
    /// the CPU if there is no GPU or only a software adapter, if the model does not fit, or if the
    /// CPU finishes first.
    #[must_use]
    pub fn auto(demand: &Demand) -> Chosen {
        Self::auto_with(demand, Limits::from_env(), |_| None)
    }

    /// As [`Executor::auto`], with these limits, and with the measured rates of the device if
    /// `known` returns any. These rates then apply to [`should_use_gpu`] too.
    #[must_use]
    pub fn auto_with(demand: &Demand, limits: Limits, known: impl FnOnce(&Device) -> Option<Rates>) -> Chosen {
        let threads = rayon::current_num_threads();
        let cpu = |because| Chosen { executor: Self::Cpu, because };
        if cpu_seconds(demand, threads) <= GPU_START_S {
            return cpu(Because::Small);
        }
        match Device::open(&Select::Hardware, limits) {
            Err(Error::NoAdapter { found, .. }) => {
                cpu(found.into_iter().next().map_or(Because::NoAdapter, |adapter| Because::Software { adapter }))
            }
            Err(error) => cpu(Because::Refused(error)),
            Ok(device) => {
                let rates = known(&device);
                rates.iter().for_each(|rates| rates.crossover.apply());
                let rates = rates.unwrap_or_else(|| Rates::modest(device.adapter().class));
                match verdict(demand, &rates, device.memory().map(|m| m.available_bytes), threads) {
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
    use crate::caps::Class;

    fn demand(weights: u64) -> Demand {
        let work = Work { flops: 2 * weights, bytes: weights / 2, weight_bytes: weights / 2 };
        Demand { work, operations: 400, resident_bytes: weights / 2 }
    }

    #[test]
    fn software_adapters_never_run_models_and_are_not_opened() {
        let Chosen { executor, because } = Executor::auto(&demand(8_000_000_000));
        let best = Device::list().into_iter().next();
        match best.filter(|adapter| adapter.class == Class::Software) {
            Some(AdapterSummary { name, .. }) => {
                assert!(matches!(&because, Because::Software { adapter } if *adapter == name), "{because:?}");
                assert!(matches!(executor, Executor::Cpu));
                assert!(Device::open(&Select::Hardware, Limits::Adapter).is_err());
            }
            None => assert!(!matches!(because, Because::Software { .. }), "{because:?}"),
        }
    }

    #[test]
    fn models_that_fit_run_on_hardware_and_those_that_do_not_stay() {
        for class in [Class::Discrete, Class::Integrated, Class::Virtual, Class::Unknown] {
            for weights in [500_000_000, 8_000_000_000] {
                let of = |available| verdict(&demand(weights), &Rates::modest(class), available, 16);
                assert!(
                    matches!(of(None), Because::Faster) && matches!(of(Some(weights / 2)), Because::Faster),
                    "{class:?}"
                );
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
        let of = |threads| verdict(&demand(4_000_000), &rates, None, threads);
        assert!(matches!((of(1), of(64)), (Because::Faster, Because::Small)));
    }

    #[test]
    fn a_device_that_was_measured_is_judged_by_that() {
        let modest = Rates::modest(Class::Discrete);
        let of = |rates: &Rates| verdict(&demand(500_000_000), rates, None, 16);
        assert!(matches!(of(&modest), Because::Faster));
        assert!(matches!(of(&Rates { read_bytes_per_s: 1e9, ..modest }), Because::Small), "a slow memory");
        assert!(matches!(of(&Rates { dispatch_s: 1e-3, ..modest }), Because::Small), "slow dispatches");
        assert!(matches!(of(&Rates { round_trip_s: 1.0, ..modest }), Because::Small), "slow answers");
    }
}
