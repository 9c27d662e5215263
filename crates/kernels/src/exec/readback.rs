//! Reads results back from the device, asynchronously. The buffers are pooled.

use super::Outputs;
use crate::device::Device;
use crate::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Mappable buffers of one plan, all of the same size.
pub(crate) struct Pool {
    device: Device,
    pub bytes: u64,
    free: Mutex<Vec<wgpu::Buffer>>,
}

impl Pool {
    pub fn new(device: &Device, bytes: u64) -> Arc<Self> {
        Arc::new(Self { device: device.clone(), bytes, free: Mutex::default() })
    }

    /// A free buffer. A new one is made when all are in use.
    pub fn take(&self) -> Result<wgpu::Buffer, Error> {
        match self.free.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(buffer) => Ok(buffer),
            None => self.device.buffer("read-back", self.bytes, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
        }
    }
}

#[derive(Default)]
struct Mapping {
    result: Option<Result<(), String>>,
    waker: Option<Waker>,
}

/// A read in progress. Dropping it does not wait, and its buffer does not return to the pool.
pub struct Read {
    pool: Arc<Pool>,
    buffer: wgpu::Buffer,
    mapping: Arc<Mutex<Mapping>>,
    #[cfg_attr(target_arch = "wasm32", allow(dead_code))]
    submission: wgpu::SubmissionIndex,
    /// Offset and length in bytes of every output.
    ranges: Vec<(u64, u64)>,
}

impl Read {
    /// Maps `buffer` once the submission that fills it is done.
    pub(crate) fn start(pool: &Arc<Pool>, buffer: wgpu::Buffer, submission: wgpu::SubmissionIndex, ranges: Vec<(u64, u64)>) -> Self {
        let mapping = Arc::new(Mutex::new(Mapping::default()));
        let done = Arc::clone(&mapping);
        buffer.map_async(wgpu::MapMode::Read, .., move |result| {
            let mut mapping = done.lock().unwrap_or_else(PoisonError::into_inner);
            mapping.result = Some(result.map_err(|e| e.to_string()));
            if let Some(waker) = mapping.waker.take() {
                waker.wake();
            }
        });
        Self { pool: Arc::clone(pool), buffer, mapping, submission, ranges }
    }

    pub(crate) async fn wait(self) -> Result<Outputs, Error> {
        #[cfg(not(target_arch = "wasm32"))]
        {
            let wait = wgpu::PollType::Wait { submission_index: Some(self.submission.clone()), timeout: None };
            if let Err(e) = self.pool.device.0.device.poll(wait) {
                self.pool.device.check("waiting for the GPU")?;
                return Err(Error::Device { what: "waiting for the GPU".to_string(), reason: e.to_string() });
            }
        }
        let mapped = Mapped(Arc::clone(&self.mapping)).await;
        self.pool.device.check("a step")?;
        mapped.map_err(|reason| Error::Device { what: "reading results back".to_string(), reason })?;
        let failed = |e: wgpu::MapRangeError| Error::Device { what: "reading results back".to_string(), reason: e.to_string() };
        let view = self.buffer.slice(..).get_mapped_range().map_err(failed)?;
        let words = |&(offset, bytes): &(u64, u64)| {
            let bytes = &view[offset as usize..(offset + bytes) as usize];
            // Mapped memory is usually aligned to words, and a plain copy is enough.
            bytemuck::try_cast_slice(bytes).map_or_else(|_| bytemuck::pod_collect_to_vec(bytes), <[u32]>::to_vec)
        };
        let outputs = Outputs(self.ranges.iter().map(words).collect());
        drop(view);
        self.buffer.unmap();
        self.pool.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.buffer);
        Ok(outputs)
    }
}

struct Mapped(Arc<Mutex<Mapping>>);

impl Future for Mapped {
    type Output = Result<(), String>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut mapping = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match mapping.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                mapping.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
