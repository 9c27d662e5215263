//! Buffers of a device, and waiting for its work.

use super::Device;
use crate::error::Error;
use crate::platform;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A buffer whose memory is freed with its last handle. The handles of wgpu alone free nothing in a
/// browser, so the buffer is destroyed. Work that was submitted before still finishes.
#[derive(Clone, Debug)]
pub(crate) struct Buffer(Arc<Owned>);

/// A buffer, and the sums over all buffers of its device.
#[derive(Debug)]
struct Owned(wgpu::Buffer, Arc<Live>);

/// The buffers that exist on a device.
#[derive(Debug, Default)]
pub(crate) struct Live {
    bytes: AtomicU64,
    count: AtomicU64,
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.1.bytes.fetch_sub(self.0.size(), Ordering::Relaxed);
        self.1.count.fetch_sub(1, Ordering::Relaxed);
        self.0.destroy();
    }
}

impl std::ops::Deref for Buffer {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.0.0
    }
}

impl Device {
    /// Returns an error if the device was lost or rejected a call. It is called before and after
    /// submits.
    pub(crate) fn check(&self, what: &str) -> Result<(), Error> {
        let failed = self.0.failed.lock().unwrap_or_else(|p| p.into_inner()).take();
        match (failed, self.0.lost.get()) {
            (Some(reason), _) => Err(self.failure(reason, what)),
            (None, Some(reason)) => Err(Error::DeviceLost { what: what.to_string(), reason: reason.clone() }),
            (None, None) => Ok(()),
        }
    }

    /// The error of a call that failed for this reason. Calls on a lost device fail in many ways
    /// before wgpu reports the loss.
    pub(crate) fn failure(&self, reason: String, what: &str) -> Error {
        platform::settle(&self.0.device, || self.0.lost.get().is_some());
        let what = what.to_string();
        match self.0.lost.get() {
            Some(reason) => Error::DeviceLost { what, reason: reason.clone() },
            None => Error::Device { what, reason },
        }
    }

    /// Whether the device was lost (driver reset, unplugged, watchdog) and must be opened again.
    /// A device that the caller shares (feature `interop`) reports its loss to the caller alone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        platform::poll(&self.0.device);
        self.0.lost.get().is_some()
    }

    /// A zeroed buffer, or an error that names its purpose `what`.
    pub(crate) async fn buffer(&self, what: &str, bytes: u64, usage: wgpu::BufferUsages) -> Result<Buffer, Error> {
        self.create(what, bytes, usage, false).await
    }

    /// A staging buffer: mapped for writing, and a source of copies.
    pub(crate) async fn staging(&self, bytes: u64) -> Result<Buffer, Error> {
        self.create("the upload of weights", bytes, wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC, true)
            .await
    }

    async fn create(
        &self,
        what: &str,
        bytes: u64,
        usage: wgpu::BufferUsages,
        mapped_at_creation: bool,
    ) -> Result<Buffer, Error> {
        let bytes = bytes.max(16).next_multiple_of(16);
        if bytes > self.0.caps.max_buffer_bytes {
            return Err(Error::BindingTooLarge { what: what.to_string(), bytes, limit: self.0.caps.max_buffer_bytes });
        }
        self.count();
        let descriptor = wgpu::BufferDescriptor { label: Some(what), size: bytes, usage, mapped_at_creation };
        let (buffer, [refused]) = {
            let scopes = self.scopes([wgpu::ErrorFilter::OutOfMemory]);
            self.0.live.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.0.live.count.fetch_add(1, Ordering::Relaxed);
            (
                Buffer(Arc::new(Owned(self.0.device.create_buffer(&descriptor), Arc::clone(&self.0.live)))),
                caught(scopes),
            )
        };
        match refused.await {
            Some(_) => Err(Error::OutOfMemory { what: what.to_string(), bytes }),
            None => Ok(buffer),
        }
    }

    /// Bytes of all buffers that exist on the device.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        self.0.live.bytes.load(Ordering::Relaxed)
    }

    /// Number of buffers that exist on the device.
    #[must_use]
    pub fn buffer_count(&self) -> u64 {
        self.0.live.count.load(Ordering::Relaxed)
    }

    /// Begins an error scope for each filter. [`caught`] ends them.
    pub(crate) fn scopes<const N: usize>(&self, filters: [wgpu::ErrorFilter; N]) -> [wgpu::ErrorScopeGuard; N] {
        filters.map(|filter| self.0.device.push_error_scope(filter))
    }

    /// A bind group: the buffers that a dispatch reads and writes.
    pub(crate) fn bind_group(
        &self,
        what: &str,
        layout: &wgpu::BindGroupLayout,
        entries: &[wgpu::BindGroupEntry<'_>],
    ) -> wgpu::BindGroup {
        self.count();
        self.0.device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some(what), layout, entries })
    }

    /// Waits until a submission is done.
    pub(crate) async fn done(&self, submission: wgpu::SubmissionIndex, what: &str) -> Result<(), Error> {
        let waited = self.0.waiter.wait(&self.0.device, &self.0.queue, submission).await;
        match waited {
            Ok(()) => self.check(what),
            Err(reason) => Err(self.failure(reason, what)),
        }
    }

    /// Submits all queued writes and waits for them, so that their staging memory is freed.
    pub(crate) async fn flush(&self, what: &str) -> Result<(), Error> {
        let submission = self.0.queue.submit([]);
        self.done(submission, what).await
    }
}

/// Ends error scopes. The futures give the errors that they caught.
pub(crate) fn caught<const N: usize>(
    scopes: [wgpu::ErrorScopeGuard; N],
) -> [impl Future<Output = Option<wgpu::Error>> + use<N>; N] {
    // The last scope ends first.
    let mut scopes = scopes.map(Some);
    let mut errors: [Option<_>; N] = std::array::from_fn(|_| None);
    for (scope, error) in scopes.iter_mut().zip(&mut errors).rev() {
        *error = scope.take().map(wgpu::ErrorScopeGuard::pop);
    }
    errors.map(|error| error.expect("every scope has ended"))
}
