//! A native host: rayon's threads, the system's clock, and threads that may block.

use rayon::prelude::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::{PipelineParts, Signal};

/// Number of threads that [`in_parallel`] uses.
pub(crate) fn threads() -> usize {
    rayon::current_num_threads()
}

/// Number of units in a part of work that [`in_turns`] is given: so many parts for each thread, or
/// all units for 0. `_work` is the number of multiplications of a unit.
pub(crate) fn part(units: usize, per_thread: usize, _work: usize) -> usize {
    units.div_ceil((per_thread * threads()).max(1)).max(1)
}

/// Calls `f` with the number and the contents of every chunk.
pub(crate) fn in_parallel(data: &mut [f32], chunk: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    data.par_chunks_mut(chunk.max(1)).enumerate().for_each(|(n, part)| f(n, part));
}

/// As [`in_parallel`]. Other work has threads of its own.
pub(crate) async fn in_turns<T: Send>(data: &mut [T], chunk: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    data.par_chunks_mut(chunk.max(1)).enumerate().for_each(|(n, part)| f(n, part));
}

/// While it exists, there are no turns. Here there never are.
pub(crate) struct WithoutTurns;

impl WithoutTurns {
    pub fn new() -> Self {
        Self
    }
}

/// Gives other work of this thread a turn, if it waits for long. Here it has threads of its own.
pub(crate) async fn turn() {}

/// Calls `f` with every item. Returns the first error.
pub(crate) fn try_each<T: Send, E: Send>(items: Vec<T>, f: impl Fn(T) -> Result<(), E> + Send + Sync) -> Result<(), E> {
    items.into_par_iter().try_for_each(f)
}

/// Calls `work` with every item on new threads, which it may block. It does not use the shared
/// thread pool, because a driver's compiler is slow and would block other tasks. This thread takes
/// part, so the work is done even if no thread can be started.
pub(crate) async fn each<T: Sync>(items: &[T], work: impl AsyncFn(&T) + Send + Sync) {
    let next = AtomicUsize::new(0);
    let take = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            block_on(work(item));
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get).min(items.len());
        for _ in 1..threads {
            let _ = thread::Builder::new().spawn_scoped(scope, take);
        }
        take();
    });
}

/// A compiled pipeline: nothing here, because making a pipeline compiles it.
pub(crate) struct Compiled;

/// Does nothing.
pub(crate) async fn compile(_device: &wgpu::Device, _parts: &PipelineParts) -> Compiled {
    Compiled
}

/// What is known of an adapter.
pub(crate) fn adapter_info(adapter: &wgpu::Adapter, _device: Option<&wgpu::Device>) -> wgpu::AdapterInfo {
    adapter.get_info()
}

/// The adapter that is missing, and the way out.
pub(crate) const NO_ADAPTER: &str = "graphics adapter (is a Vulkan, Metal or DX12 driver installed?)";

/// Work in the background that a caller may wait for.
#[derive(Debug, Default)]
pub(crate) struct Background(Option<thread::JoinHandle<()>>);

impl Background {
    /// Starts the work. It is left out if no thread can be started.
    pub fn start(name: &str, work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(thread::Builder::new().name(name.to_string()).spawn(|| block_on(work)).ok())
    }

    /// Waits for the end of the work.
    pub fn wait(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// A point in time.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moment(Instant);

impl Moment {
    pub fn now() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

thread_local! {
    /// Whether a future on this thread runs inside [`block_on`], so that it may block the thread.
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a future to its end and blocks this thread meanwhile.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    /// Takes the permission back, also after a panic.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            MAY_BLOCK.set(self.0);
        }
    }
    let _restore = Restore(MAY_BLOCK.replace(true));
    pollster::block_on(future)
}

/// The thread of a device that waits for submissions, for tasks that must not block their own
/// thread. It starts when a task first needs it, and ends with the device.
#[derive(Default)]
pub(crate) struct Waiter(OnceLock<mpsc::Sender<Awaited>>);

type Awaited = (wgpu::SubmissionIndex, Box<dyn FnOnce(Result<(), String>) + Send>);

fn wait_here(device: &wgpu::Device, submission: wgpu::SubmissionIndex) -> Result<(), String> {
    let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
    device.poll(wait).map(|_| ()).map_err(|e| e.to_string())
}

impl Waiter {
    /// Waits until a submission is done and its callbacks have run.
    pub async fn wait(
        &self,
        device: &wgpu::Device,
        _queue: &wgpu::Queue,
        submission: wgpu::SubmissionIndex,
    ) -> Result<(), String> {
        if MAY_BLOCK.get() {
            return wait_here(device, submission);
        }
        let signal = Signal::new();
        let sender = self.0.get_or_init(|| {
            let (sender, receiver) = mpsc::channel::<Awaited>();
            let device = device.clone();
            let work = move || receiver.into_iter().for_each(|(submission, done)| done(wait_here(&device, submission)));
            let _ = thread::Builder::new().name("device".to_string()).spawn(work);
            sender
        });
        if let Err(mpsc::SendError((submission, _))) = sender.send((submission, Box::new(signal.setter()))) {
            // No thread could be started, so this thread waits.
            return wait_here(device, submission);
        }
        signal.await
    }

    #[cfg(test)]
    pub fn started(&self) -> bool {
        self.0.get().is_some()
    }
}

/// Longest wait for the work of a device that fails.
const SETTLES: Duration = Duration::from_secs(5);

/// How often a thread looks whether another thread has reported a loss, and the time between looks.
const LOOKS: (u32, Duration) = (40, Duration::from_millis(5));

/// Waits until a device whose calls fail has reported its loss, if it was lost. wgpu reports a loss
/// when no work is in flight any more. The thread that polls then makes the report.
pub(crate) fn settle(device: &wgpu::Device, reported: impl Fn() -> bool) {
    let _ = device.poll(wgpu::PollType::Wait { submission_index: None, timeout: Some(SETTLES) });
    for _ in 0..LOOKS.0 {
        if reported() {
            return;
        }
        thread::sleep(LOOKS.1);
        poll(device);
    }
}

/// Lets the device report errors and losses that it knows of.
pub(crate) fn poll(device: &wgpu::Device) {
    let _ = device.poll(wgpu::PollType::Poll);
}
