//! Reads results back from the device, asynchronously. The buffers are pooled.

use super::watch::Outputs;
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::error::Error;
use crate::platform::Signal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Mappable buffers of one plan, all of the same size.
pub(crate) struct Pool {
    device: Device,
    pub bytes: u64,
    free: Mutex<Vec<Buffer>>,
}

impl Pool {
    pub fn new(device: &Device, bytes: u64) -> Arc<Self> {
        Arc::new(Self { device: device.clone(), bytes, free: Mutex::default() })
    }

    /// A free buffer. A new one is made when all are in use.
    pub async fn take(&self) -> Result<Buffer, Error> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match free {
            Some(buffer) => Ok(buffer),
            None => {
                self.device
                    .buffer("read-back", self.bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST)
                    .await
            }
        }
    }
}

/// A read in progress. Dropping it does not wait, and its buffer does not return to the pool.
pub struct Read {
    pool: Arc<Pool>,
    buffer: Buffer,
    mapped: Signal<Result<(), wgpu::BufferAsyncError>>,
    submission: wgpu::SubmissionIndex,
    /// Offset and length in bytes of every output.
    ranges: Vec<(u64, u64)>,
    running: Running,
}

/// Counts a read until it is waited for or dropped.
struct Running(Arc<AtomicU64>);

impl Running {
    fn on(device: &Device) -> Self {
        device.0.running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&device.0.running))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Device {
    /// Whether every read is waited for or dropped. The device then has no step to run, unless a
    /// read was dropped early.
    pub(super) fn is_idle(&self) -> bool {
        self.0.running.load(Ordering::Relaxed) == 0
    }
}

impl Read {
    /// Maps `buffer` once the submission that fills it is done.
    pub(crate) fn start(
        pool: &Arc<Pool>,
        buffer: Buffer,
        submission: wgpu::SubmissionIndex,
        ranges: Vec<(u64, u64)>,
    ) -> Self {
        let mapped = Signal::new();
        buffer.map_async(wgpu::MapMode::Read, .., mapped.setter());
        let running = Running::on(&pool.device);
        Self { pool: Arc::clone(pool), buffer, mapped, submission, ranges, running }
    }

    pub(crate) async fn wait(self) -> Result<Outputs, Error> {
        let Self { pool, buffer, mapped, submission, ranges, running: _running } = self;
        let what = "reading results back";
        pool.device.done(submission, "a step").await?;
        let mapped = mapped.await;
        mapped.map_err(|e| pool.device.failure(e.to_string(), what))?;
        pool.device.check(what)?;
        let outputs = {
            let view = buffer.slice(..).get_mapped_range().map_err(|e| pool.device.failure(e.to_string(), what))?;
            let words = |&(offset, bytes): &(u64, u64)| {
                let bytes = &view[offset as usize..(offset + bytes) as usize];
                // Mapped memory is usually aligned to words, and a plain copy is enough.
                bytemuck::try_cast_slice(bytes).map_or_else(|_| bytemuck::pod_collect_to_vec(bytes), <[u32]>::to_vec)
            };
            Outputs(ranges.iter().map(words).collect())
        };
        buffer.unmap();
        pool.free.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::block_on;

    #[test]
    fn a_device_is_idle_until_a_read_starts_and_after_it_is_waited_for_or_dropped() {
        let device = Device::auto().expect("an adapter, if only the software one");
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let source = block_on(device.buffer("a source", 16, usage)).expect("a buffer");
        let pool = Pool::new(&device, 16);
        let read = || {
            let encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            block_on(device.read(&pool, encoder, &source)).expect("starts")
        };
        assert!(device.is_idle());
        let (first, second) = (read(), read());
        assert!(!device.is_idle());
        block_on(first.wait_async()).expect("ends");
        assert!(!device.is_idle(), "the second still runs");
        drop(second);
        assert!(device.is_idle());
    }
}
