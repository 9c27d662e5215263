//! Reads results back from the device, asynchronously. The buffers are pooled.

use super::Outputs;
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::error::Error;
use crate::platform::Signal;
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
            None => self.device.buffer("read-back", self.bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST).await,
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
}

impl Read {
    /// Maps `buffer` once the submission that fills it is done.
    pub(crate) fn start(pool: &Arc<Pool>, buffer: Buffer, submission: wgpu::SubmissionIndex, ranges: Vec<(u64, u64)>) -> Self {
        let mapped = Signal::new();
        buffer.map_async(wgpu::MapMode::Read, .., mapped.setter());
        Self { pool: Arc::clone(pool), buffer, mapped, submission, ranges }
    }

    pub(crate) async fn wait(self) -> Result<Outputs, Error> {
        let Self { pool, buffer, mapped, submission, ranges } = self;
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
