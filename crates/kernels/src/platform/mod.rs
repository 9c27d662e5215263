//! Differences between a native host and a browser: threads, clocks, waiting for a device, and
//! compiling for it.
//!
//! Both files define the same functions. Other code of this crate does not ask for the target,
//! except `lib.rs`, which leaves out the module `native` in a browser.

#[cfg(target_arch = "wasm32")]
#[path = "browser.rs"]
mod target;
#[cfg(not(target_arch = "wasm32"))]
#[path = "native.rs"]
mod target;

pub(crate) use target::*;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The parts of the pipeline of a shader that decide what the device compiles.
pub(crate) struct PipelineParts {
    pub text: String,
    pub entry: &'static str,
    /// The types of the buffers, by binding.
    pub buffers: Vec<wgpu::BufferBindingType>,
}

/// A value that a callback sets and one task awaits.
pub(crate) struct Signal<T>(Arc<Mutex<Set<T>>>);

struct Set<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl<T> Signal<T> {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Set { value: None, waker: None })))
    }

    /// The function that sets the value and wakes the task.
    pub fn setter(&self) -> impl FnOnce(T) + use<T> {
        let place = Arc::clone(&self.0);
        move |value| {
            let mut set = place.lock().unwrap_or_else(PoisonError::into_inner);
            set.value = Some(value);
            let waker = set.waker.take();
            drop(set);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl<T> Future for Signal<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match set.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                set.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The result of a future that needs no waiting; otherwise the future, to be awaited.
pub(crate) fn at_once<F: Future + Unpin>(mut future: F) -> Result<F::Output, F> {
    match Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err(future),
    }
}

/// Runs a computation that has turns for other work, without these turns.
pub(crate) fn in_one_turn<T>(work: impl Future<Output = T>) -> T {
    let _without = WithoutTurns::new();
    match at_once(std::pin::pin!(work)) {
        Ok(output) => output,
        Err(_) => unreachable!("a computation waits for its turns alone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_ready_when_it_is_set_before_or_after_it_is_awaited() {
        let signal = Signal::new();
        signal.setter()(3);
        assert_eq!(at_once(signal).ok(), Some(3));
        let signal = Signal::new();
        let set = signal.setter();
        let Err(signal) = at_once(signal) else { panic!("nothing set it") };
        let thread = std::thread::spawn(move || set(4));
        assert_eq!(block_on(signal), 4);
        thread.join().expect("the value is set");
    }

    /// A task that polls futures itself is woken by the thread that waits for the device, and does
    /// not block its own thread.
    #[test]
    fn a_future_that_another_executor_polls_waits_on_a_thread_of_the_device() {
        let device = crate::device::tests::device();
        let wait = std::pin::pin!(async {
            let submission = device.0.queue.submit([]);
            device.done(submission, "a test").await
        });
        // `pollster` alone polls without the permission to block that `block_on` gives.
        pollster::block_on(wait).expect("the device works");
        assert!(device.0.waiter.started());
    }
}
