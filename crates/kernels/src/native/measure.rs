//! Measures a device: memory reads, matrix products, dispatches, and transfers to and from the
//! host.

mod chain;
mod products;
mod stream;

use crate::caps::Class;
use crate::device::Device;
use crate::error::Error;
use crate::exec::profile::Roof;
use crate::exec::readback::Pool;
use crate::platform::block_on;
use std::time::{Duration, Instant};

/// The measured rates of one device. Profiles and benches use them as roofs.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Measured {
    /// Reading memory in long streams, 10^9 bytes per second.
    pub read_gb_per_s: f64,
    /// The matrix product with f16 weights, 10^12 operations per second.
    pub matrix_tflop_per_s: f64,
    /// Products of f16 with f32 sums through cooperative matrices (tensor cores), from registers,
    /// 10^12 operations per second. `None` on a device without them.
    pub cooperative_tflop_per_s: Option<f64>,
    /// A small dispatch that waits for the previous one, microseconds.
    pub dispatch_us: f64,
    pub transfer: Transfer,
}

impl Measured {
    /// The roof of kernels on this device.
    #[must_use]
    pub fn roof(&self) -> Roof {
        let Self { read_gb_per_s, matrix_tflop_per_s, cooperative_tflop_per_s, .. } = *self;
        Roof { gb_per_s: read_gb_per_s, tflop_per_s: matrix_tflop_per_s, cooperative_tflop_per_s }
    }
}

/// Transfers between host memory and device memory.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Transfer {
    /// From a slice to a buffer, 10^9 bytes per second.
    pub write_gb_per_s: f64,
    /// From a buffer to a vector, 10^9 bytes per second.
    pub read_gb_per_s: f64,
    /// Submitting one copy of a few bytes and reading them, microseconds.
    pub round_trip_us: f64,
}

/// The amounts that are read, multiplied and transferred.
struct Sizes {
    read_bytes: u64,
    /// Numbers of workgroups to read with. Each divides the last.
    grids: &'static [u32],
    transfer_bytes: u64,
    matrix: u32,
    matrix_rows: u32,
    dispatches: u32,
}

/// Sizes for all devices except software ones. The bytes read are many times a device's caches.
const SIZES: Sizes = Sizes {
    read_bytes: 1 << 30,
    grids: &[2048, 4096, 8192],
    transfer_bytes: 32 << 20,
    matrix: 4096,
    matrix_rows: 2048,
    dispatches: 1024,
};
const SOFTWARE: Sizes = Sizes {
    read_bytes: 64 << 20,
    grids: &[64],
    transfer_bytes: 16 << 20,
    matrix: 256,
    matrix_rows: 64,
    dispatches: 128,
};

/// Number of samples of each measurement.
const SAMPLES: usize = 5;
/// Target time of one sample. It is long compared with the cost of a submission.
const SAMPLE_SECONDS: f64 = 0.02;
/// Time under load after which the clocks of a device have risen.
pub(crate) const WARM_UP: Duration = Duration::from_millis(100);

/// Measures a device. Takes one to two seconds and at most a quarter of the free memory.
///
/// # Errors
/// Allocation errors and loss of the device.
pub fn measure(device: &Device) -> Result<Measured, Error> {
    let mut sizes = if device.adapter().class == Class::Software { SOFTWARE } else { SIZES };
    if let Some(memory) = device.memory() {
        sizes.read_bytes = sizes.read_bytes.min(memory.available_bytes / 4);
    }
    Ok(Measured {
        read_gb_per_s: stream::read(device, &sizes)?,
        matrix_tflop_per_s: chain::matrix(device, &sizes)?,
        cooperative_tflop_per_s: products::cooperative(device)?,
        dispatch_us: chain::dispatch(device, &sizes)?,
        transfer: transfer(device, &sizes)?,
    })
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// The median of [`SAMPLES`] samples, or the first error.
fn sampled(sample: impl FnMut() -> Result<f64, Error>) -> Result<f64, Error> {
    Ok(median(std::iter::repeat_with(sample).take(SAMPLES).collect::<Result<_, _>>()?))
}

/// The smallest of [`SAMPLES`] samples. Other work on the machine only adds time, and it must not
/// reverse the sign of a difference of two times.
fn least(mut sample: impl FnMut() -> Result<f64, Error>) -> Result<f64, Error> {
    (0..SAMPLES).try_fold(f64::INFINITY, |least, _| Ok(least.min(sample()?)))
}

/// Seconds from the submit of these commands to their end.
pub(crate) fn seconds(device: &Device, commands: wgpu::CommandBuffer) -> Result<f64, Error> {
    block_on(device.flush("measuring"))?;
    let began = Instant::now();
    let submission = device.0.queue.submit([commands]);
    let waited = block_on(device.done(submission, "measuring"));
    let seconds = began.elapsed().as_secs_f64();
    waited?;
    Ok(seconds.max(1e-9))
}

fn transfer(device: &Device, sizes: &Sizes) -> Result<Transfer, Error> {
    let bytes = sizes.transfer_bytes;
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let buffer = block_on(device.buffer("a transfer", bytes, usage))?;
    let host = vec![0x5a_u8; bytes as usize];
    let written = sampled(|| {
        let began = Instant::now();
        device.0.queue.write_buffer(&buffer, 0, &host);
        block_on(device.flush("measuring"))?;
        Ok(began.elapsed().as_secs_f64())
    })?;
    let reading = |bytes| {
        let pool = Pool::new(device, bytes);
        sampled(|| {
            let began = Instant::now();
            let encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            block_on(device.read(&pool, encoder, &buffer))?.wait()?;
            Ok(began.elapsed().as_secs_f64())
        })
    };
    let gb_per_s = |seconds: f64| bytes as f64 / seconds.max(1e-9) / 1e9;
    Ok(Transfer {
        write_gb_per_s: gb_per_s(written),
        read_gb_per_s: gb_per_s(reading(bytes)?),
        round_trip_us: reading(16)? * 1e6,
    })
}
