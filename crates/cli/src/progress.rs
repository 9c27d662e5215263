//! Progress on stderr, shown only at a terminal and only for work that takes longer than 300 ms.

use gguf::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Work that ends before this time shows no progress.
const PATIENCE: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(120);

const BYTES: &str = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {eta}";
const COUNT: &str = "{msg} {wide_bar} {pos}/{len} {eta}";
const UNKNOWN: &str = "{spinner} {msg} {elapsed}";

/// A progress line on stderr. It appears after [`PATIENCE`] and is erased when this is dropped.
pub struct Bar {
    bar: ProgressBar,
    waiter: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Progress in bytes. The first report gives the total.
    pub fn bytes(what: impl Into<String>) -> Self {
        Self::new(what.into(), BYTES)
    }

    /// Progress in steps. The first report gives the total.
    pub fn count(what: impl Into<String>) -> Self {
        Self::new(what.into(), COUNT)
    }

    fn new(what: String, total: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_message(what);
        bar.set_style(style(UNKNOWN));
        let waiter = std::io::stderr().is_terminal().then(|| {
            let (done, wait) = channel();
            let shown = bar.clone();
            let thread = std::thread::spawn(move || {
                let due = |after| wait.recv_timeout(after) == Err(RecvTimeoutError::Timeout);
                if !due(PATIENCE) {
                    return;
                }
                shown.set_draw_target(ProgressDrawTarget::stderr());
                let mut counted = false;
                loop {
                    if !counted && shown.length().is_some() {
                        shown.set_style(style(total));
                        counted = true;
                    }
                    shown.tick();
                    if !due(TICK) {
                        return;
                    }
                }
            });
            (done, thread)
        });
        Self { bar, waiter }
    }

    /// Reports progress.
    pub fn set(&self, done: u64, total: u64) {
        if self.waiter.is_some() {
            self.bar.set_length(total);
            self.bar.set_position(done);
        }
    }

    /// Reports the progress of a library.
    pub fn show(&self, progress: Progress) {
        self.set(progress.done, progress.total);
    }

    /// A function like [`Bar::show`] that other threads can call, also after the bar is gone.
    pub fn reporter(&self) -> impl Fn(Progress) + Send + Sync + 'static {
        let (bar, shown) = (self.bar.clone(), self.waiter.is_some());
        move |progress| {
            if shown {
                bar.set_length(progress.total);
                bar.set_position(progress.done);
            }
        }
    }

    /// Replaces the text of the line.
    pub fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// Hides the line while `write` prints to the terminal.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Erases the line and stops its thread.
    pub fn clear(&mut self) {
        if let Some((done, thread)) = self.waiter.take() {
            let _ = done.send(());
            drop(done);
            let _ = thread.join();
            self.bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}
