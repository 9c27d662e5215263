//! Where to run: slices that live on the host by their length, models by what their steps cost.

use crate::device::{Class, Device};
use crate::error::Error;
use crate::exec::Executor;
use crate::ops::Work;
use crate::record::Recorder;
use crate::run;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Elements from which a slice on the host is worth sending to a GPU, as long as nobody has measured.
pub const GPU_MIN_SIZE: usize = 100_000;

static MIN_SIZE: AtomicUsize = AtomicUsize::new(GPU_MIN_SIZE);

/// Whether a GPU finishes an operation on a slice of the host sooner than the CPU, transfers included:
/// from [`GPU_MIN_SIZE`] elements on, or from what [`Crossover::apply`] has set for this process.
#[must_use]
pub fn should_use_gpu(elements: usize) -> bool {
    elements >= MIN_SIZE.load(Ordering::Relaxed)
}

/// What one operation on a slice of the host costs on both sides, as measured.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Crossover {
    /// A call on the GPU, whatever its size.
    pub gpu_call_s: f64,
    /// And each element, there and back.
    pub gpu_element_s: f64,
    pub cpu_element_s: f64,
}

/// Row length of the norm that stands for all operations on slices, and rows of a short and a long slice.
const DIM: usize = 1024;
const FEW: usize = 1;
const MANY: usize = 1024;
const SAMPLES: usize = 5;

impl Crossover {
    /// Times [`run::rms_norm`] on both sides; under a second.
    ///
    /// # Errors
    /// Those of the executors.
    pub fn measure(device: &Device) -> Result<Self, Error> {
        let on_gpu = Executor::from(device);
        let (few, many) = (seconds(&on_gpu, FEW)?, seconds(&on_gpu, MANY)?);
        let element_s = (many - few) / ((MANY - FEW) * DIM) as f64;
        let cpu_element_s = seconds(&Executor::Cpu, MANY)? / (MANY * DIM) as f64;
        Ok(Self { gpu_call_s: few, gpu_element_s: element_s.max(0.0), cpu_element_s })
    }

    /// The length at which both sides take as long; `usize::MAX` where the GPU never catches up.
    #[must_use]
    pub fn elements(&self) -> usize {
        let gain = self.cpu_element_s - self.gpu_element_s;
        // The conversion saturates.
        if gain > 0.0 { (self.gpu_call_s / gain).ceil() as usize } else { usize::MAX }
    }

    /// Makes [`should_use_gpu`] answer by this in the whole process.
    pub fn apply(&self) {
        MIN_SIZE.store(self.elements(), Ordering::Relaxed);
    }
}

/// The median time of a norm over so many rows, after one that compiles.
fn seconds(on: &Executor, rows: usize) -> Result<f64, Error> {
    let x = vec![0.5; rows * DIM];
    let mut samples = [0.0; SAMPLES];
    run::rms_norm(on, &x, None, DIM, 1e-6)?;
    for sample in &mut samples {
        let began = Instant::now();
        run::rms_norm(on, &x, None, DIM, 1e-6)?;
        *sample = began.elapsed().as_secs_f64();
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}

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
/// A submission with its read-back, and a dispatch that waits for the one before it, on an ordinary device, seconds.
const GPU_STEP_S: f64 = 100e-6;
const GPU_DISPATCH_S: f64 = 4e-6;
/// Operations per second of the oracles on one thread: 0.3 to 0.6 10^9 where it was measured, with weights of any type.
const CPU_FLOP_PER_S: f64 = 0.5e9;

/// Bytes per second that even a modest adapter of this class reads.
fn modest_bandwidth(class: Class) -> f64 {
    if class == Class::Discrete { 200e9 } else { 30e9 }
}

fn cpu_seconds(demand: &Demand, threads: usize) -> f64 {
    STEPS * demand.work.flops as f64 / (CPU_FLOP_PER_S * threads.max(1) as f64)
}

fn gpu_seconds(demand: &Demand, class: Class) -> f64 {
    let step = GPU_STEP_S + GPU_DISPATCH_S * demand.operations as f64 + demand.work.bytes as f64 / modest_bandwidth(class);
    GPU_START_S + STEPS * step
}

/// The verdict on a device that answers: `Faster`, or why not.
fn verdict(demand: &Demand, adapter: &crate::AdapterSummary, available_bytes: Option<u64>, threads: usize) -> Because {
    let (needed_bytes, class) = (demand.resident_bytes, adapter.class);
    match available_bytes {
        _ if class == Class::Software => Because::Software { adapter: adapter.name.clone() },
        Some(available_bytes) if needed_bytes > available_bytes => Because::TooLarge { needed_bytes, available_bytes },
        _ if cpu_seconds(demand, threads) <= gpu_seconds(demand, class) => Because::Small,
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
        let threads = rayon::current_num_threads();
        let cpu = |because| Chosen { executor: Self::Cpu, because };
        if cpu_seconds(demand, threads) <= GPU_START_S {
            return cpu(Because::Small);
        }
        match Device::auto() {
            Err(Error::NoAdapter { .. }) => cpu(Because::NoAdapter),
            Err(error) => cpu(Because::Refused(error)),
            Ok(device) => match verdict(demand, device.adapter(), device.memory().map(|m| m.available_bytes), threads) {
                Because::Faster => Chosen { executor: Self::Gpu(device), because: Because::Faster },
                because => cpu(because),
            },
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
        let because = verdict(&demand(8_000_000_000), &adapter(Class::Software), None, 1);
        assert!(matches!(because, Because::Software { .. }), "{because:?}");
    }

    #[test]
    fn models_that_fit_run_on_hardware_and_those_that_do_not_stay() {
        for class in [Class::Discrete, Class::Integrated, Class::Virtual, Class::Unknown] {
            for weights in [500_000_000, 8_000_000_000] {
                let of = |available| verdict(&demand(weights), &adapter(class), available, 16);
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
        let of = |threads| verdict(&demand(4_000_000), &adapter(Class::Discrete), None, threads);
        assert!(matches!((of(1), of(64)), (Because::Faster, Because::Small)));
    }

    #[test]
    fn the_crossover_is_where_both_sides_take_as_long() {
        let crossover = Crossover { gpu_call_s: 1e-3, gpu_element_s: 1e-9, cpu_element_s: 5e-9 };
        let n = crossover.elements() as f64;
        assert!((crossover.gpu_call_s + n * crossover.gpu_element_s - n * crossover.cpu_element_s).abs() < 1e-8);
        assert_eq!(Crossover { gpu_element_s: 5e-9, ..crossover }.elements(), usize::MAX);
    }

    #[test]
    fn what_was_measured_replaces_the_default() {
        assert!(!should_use_gpu(GPU_MIN_SIZE - 1) && should_use_gpu(GPU_MIN_SIZE));
        Crossover { gpu_call_s: 1.0, gpu_element_s: 0.0, cpu_element_s: 1.0 / 512.0 }.apply();
        assert!(!should_use_gpu(511) && should_use_gpu(512));
        MIN_SIZE.store(GPU_MIN_SIZE, Ordering::Relaxed);
    }

    #[test]
    fn both_sides_are_timed() {
        let crossover = Crossover::measure(&crate::device::tests::device()).expect("a norm");
        assert!(crossover.gpu_call_s > 0.0 && crossover.cpu_element_s > 0.0 && crossover.elements() > 0, "{crossover:?}");
    }
}
