//! A browser: one thread that must not block, and no clock.

use super::Signal;
use std::time::Duration;

/// Number of threads that [`in_parallel`] uses.
pub(crate) fn threads() -> usize {
    1
}

/// Calls `f` with the number and the contents of every chunk.
pub(crate) fn in_parallel(data: &mut [f32], chunk: usize, f: impl Fn(usize, &mut [f32])) {
    data.chunks_mut(chunk.max(1)).enumerate().for_each(|(n, part)| f(n, part));
}

/// Calls `f` with every item. Returns the first error.
pub(crate) fn try_each<T, E>(items: Vec<T>, f: impl Fn(T) -> Result<(), E>) -> Result<(), E> {
    items.into_iter().try_for_each(f)
}

/// Calls `work` with every item.
pub(crate) fn on_new_threads<T>(items: &[T], work: impl Fn(&T)) {
    items.iter().for_each(work);
}

/// Work in the background. A browser does none, so it is left to the first caller that needs it.
#[derive(Debug, Default)]
pub(crate) struct Background;

impl Background {
    /// Leaves the work out.
    pub fn start(_name: &str, _work: impl FnOnce() + 'static) -> Self {
        Self
    }

    pub fn wait(&mut self) {}
}

/// A point in time. All times are zero here.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moment;

impl Moment {
    pub fn now() -> Self {
        Self
    }

    pub fn elapsed(self) -> Duration {
        Duration::ZERO
    }
}

/// Waits for submissions through the browser's own callbacks.
#[derive(Default)]
pub(crate) struct Waiter;

impl Waiter {
    /// Waits until a submission is done.
    pub async fn wait(
        &self,
        _device: &wgpu::Device,
        queue: &wgpu::Queue,
        _submission: wgpu::SubmissionIndex,
    ) -> Result<(), String> {
        let signal = Signal::new();
        let set = signal.setter();
        queue.on_submitted_work_done(move || set(()));
        signal.await;
        Ok(())
    }
}

/// A browser reports errors and losses by itself.
pub(crate) fn settle(_device: &wgpu::Device, _reported: impl Fn() -> bool) {}

/// A browser reports errors by itself.
pub(crate) fn poll(_device: &wgpu::Device) {}
