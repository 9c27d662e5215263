//! A browser: one thread that must not block.

mod webgpu;

use super::Signal;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use wasm_bindgen::prelude::wasm_bindgen;
pub(crate) use webgpu::{adapter_info, compile};

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

/// Number of items that [`each`] works on at once: more than a browser has threads that compile.
const AT_ONCE: usize = 16;

/// Calls `work` with every item, several at once, in their order.
pub(crate) async fn each<T>(items: &[T], work: impl AsyncFn(&T)) {
    let next = Cell::new(0);
    let lane = async || {
        while let Some(item) = items.get(next.replace(next.get() + 1)) {
            work(item).await;
        }
    };
    let mut lanes: Vec<Pin<Box<_>>> = (0..AT_ONCE.min(items.len())).map(|_| Box::pin(lane())).collect();
    poll_fn(|cx| {
        lanes.retain_mut(|lane| lane.as_mut().poll(cx).is_pending());
        if lanes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Work in the background. The browser calls it between other tasks.
#[derive(Debug, Default)]
pub(crate) struct Background;

impl Background {
    /// Starts the work.
    pub fn start(_name: &str, work: impl Future<Output = ()> + 'static) -> Self {
        wasm_bindgen_futures::spawn_local(work);
        Self
    }

    /// Does not wait, because a browser's thread must not block.
    pub fn wait(&mut self) {}
}

#[wasm_bindgen]
extern "C" {
    /// Milliseconds since the page or the worker began.
    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
}

/// A point in time.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moment(f64);

impl Moment {
    pub fn now() -> Self {
        Self(now())
    }

    pub fn elapsed(self) -> Duration {
        Duration::from_secs_f64((now() - self.0).max(0.0) / 1e3)
    }
}

/// The adapter that is missing, and the way out.
pub(crate) const NO_ADAPTER: &str = "WebGPU adapter in this browser (Chrome, Edge, Safari 26 and Firefox 141 have WebGPU, \
                                     on https and localhost alone; use the CPU)";

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
