//! A browser: one thread that must not block.

mod webgpu;

use super::Signal;
use js_sys::{Array, Function, Reflect};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use wasm_bindgen::prelude::{Closure, wasm_bindgen};
use wasm_bindgen::{JsCast, JsValue};
pub(crate) use webgpu::{adapter_info, compile};

/// The parts that work is cut into, between which [`in_turns`] may stop. There is one thread.
pub(crate) fn threads() -> usize {
    32
}

/// Multiplications between two looks at the clock: a few milliseconds.
const PART: usize = 1 << 22;

/// Number of units in a part of work that [`in_turns`] is given. `work` is the number of
/// multiplications of a unit.
pub(crate) fn part(units: usize, _per_thread: usize, work: usize) -> usize {
    (PART / work.max(1)).clamp(1, units.max(1))
}

/// Calls `f` with the number and the contents of every chunk.
pub(crate) fn in_parallel(data: &mut [f32], chunk: usize, f: impl Fn(usize, &mut [f32])) {
    data.chunks_mut(chunk.max(1)).enumerate().for_each(|(n, part)| f(n, part));
}

/// As [`in_parallel`], with a [`turn`] after each chunk.
pub(crate) async fn in_turns<T>(data: &mut [T], chunk: usize, f: impl Fn(usize, &mut [T])) {
    for (n, part) in data.chunks_mut(chunk.max(1)).enumerate() {
        f(n, part);
        turn().await;
    }
}

thread_local! {
    /// When the event loop had its last turn, in milliseconds.
    static LAST_TURN: Cell<f64> = const { Cell::new(0.0) };
    /// Whether there are no turns now.
    static WITHOUT: Cell<bool> = const { Cell::new(false) };
    static CHANNEL: Channel = Channel::new();
}

/// While it exists, there are no turns.
pub(crate) struct WithoutTurns {
    before: bool,
}

impl WithoutTurns {
    pub fn new() -> Self {
        Self { before: WITHOUT.replace(true) }
    }
}

impl Drop for WithoutTurns {
    fn drop(&mut self) {
        WITHOUT.set(self.before);
    }
}

/// Longest time between turns of the event loop, in milliseconds: of a page, which draws 60
/// pictures a second, and of a worker.
const TURNS_MS: [f64; 2] = [12.0, 30.0];

/// Gives the event loop a turn, if its last turn is long ago.
pub(crate) async fn turn() {
    if WITHOUT.get() {
        return;
    }
    let longest = CHANNEL.with(|channel| TURNS_MS[usize::from(channel.in_worker)]);
    if now() - LAST_TURN.get() < longest {
        return;
    }
    CHANNEL.with(Channel::turn).await;
    LAST_TURN.set(now());
}

/// The signals of the messages that are under way, in order.
type Waiting = Rc<RefCell<VecDeque<Box<dyn FnOnce(())>>>>;

/// Messages to ourselves. A message waits for the tasks that are queued before it, and browsers do
/// not delay it, as they do timers.
struct Channel {
    in_worker: bool,
    port: JsValue,
    waiting: Waiting,
    _receive: Closure<dyn FnMut()>,
}

impl Channel {
    fn new() -> Self {
        let global = js_sys::global();
        let get = |object: &JsValue, key: &str| Reflect::get(object, &key.into()).unwrap_or(JsValue::UNDEFINED);
        let constructor: Function = get(&global, "MessageChannel").unchecked_into();
        let channel = Reflect::construct(&constructor, &Array::new()).expect("every browser has MessageChannel");
        let waiting = Waiting::default();
        let received = Rc::clone(&waiting);
        let receive = Closure::new(move || {
            let next = received.borrow_mut().pop_front();
            next.into_iter().for_each(|set| set(()));
        });
        let _ = Reflect::set(&get(&channel, "port1"), &"onmessage".into(), receive.as_ref());
        let in_worker = get(&global, "document").is_undefined();
        Self { in_worker, port: get(&channel, "port2"), waiting, _receive: receive }
    }

    /// Is ready after a turn of the event loop.
    fn turn(&self) -> Signal<()> {
        let signal = Signal::new();
        self.waiting.borrow_mut().push_back(Box::new(signal.setter()));
        let post: Function = Reflect::get(&self.port, &"postMessage".into()).unwrap_or_default().unchecked_into();
        let _ = post.call1(&self.port, &JsValue::NULL);
        signal
    }
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
