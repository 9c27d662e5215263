//! The slice length from which a GPU is faster than the CPU, transfers included.

use crate::device::Device;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::native::run;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Default number of elements from which a GPU is faster for a host slice.
pub const GPU_MIN_SIZE: usize = 100_000;

static MIN_SIZE: AtomicUsize = AtomicUsize::new(GPU_MIN_SIZE);

/// Whether a GPU is faster than the CPU for an operation on a host slice, transfers included. The
/// limit is [`GPU_MIN_SIZE`], or the value that [`Crossover::apply`] has set for this process.
#[must_use]
pub fn should_use_gpu(elements: usize) -> bool {
    elements >= MIN_SIZE.load(Ordering::Relaxed)
}

/// The measured cost of one operation on a host slice, on the GPU and on the CPU.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Crossover {
    /// Fixed cost of a call on the GPU.
    pub gpu_call_s: f64,
    /// Additional cost of each element on the GPU, with both transfers.
    pub gpu_element_s: f64,
    pub cpu_element_s: f64,
}

/// Row length of the measured norm, which represents all operations on slices.
const DIM: usize = 1024;

/// Rows of the short slice.
const FEW: usize = 1;

/// Rows of the long slice.
const MANY: usize = 1024;

const SAMPLES: usize = 5;

impl Crossover {
    /// Times [`run::rms_norm`] on the GPU and the CPU. Takes less than a second.
    ///
    /// # Errors
    /// Errors of the executors.
    pub fn measure(device: &Device) -> Result<Self, Error> {
        let on_gpu = Executor::from(device);
        let (few, many) = (seconds(&on_gpu, FEW)?, seconds(&on_gpu, MANY)?);
        let element_s = (many - few) / ((MANY - FEW) * DIM) as f64;
        let cpu_element_s = seconds(&Executor::Cpu, MANY)? / (MANY * DIM) as f64;
        Ok(Self { gpu_call_s: few, gpu_element_s: element_s.max(0.0), cpu_element_s })
    }

    /// The length at which GPU and CPU take the same time; `usize::MAX` if the GPU is never faster.
    #[must_use]
    pub fn elements(&self) -> usize {
        let gain = self.cpu_element_s - self.gpu_element_s;
        // The conversion saturates.
        if gain > 0.0 { (self.gpu_call_s / gain).ceil() as usize } else { usize::MAX }
    }

    /// Makes [`should_use_gpu`] use this crossover in the whole process.
    pub fn apply(&self) {
        MIN_SIZE.store(self.elements(), Ordering::Relaxed);
    }
}

/// The median time of a norm over `rows` rows, after a first call that compiles the kernel.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(
            crossover.gpu_call_s > 0.0 && crossover.cpu_element_s > 0.0 && crossover.elements() > 0,
            "{crossover:?}"
        );
    }
}
