//! Measures the time that a device needs before it computes.

use crate::platform::Moment;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time spent on preparing a device so far, to report to the user.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Finding the adapter and opening the device.
    pub opening: Duration,
    /// Compiling recordings into plans and making their buffers.
    pub planning: Duration,
    /// Time during which at least one thread was building a pipeline.
    pub building: Duration,
    /// The part of `building` in which a plan waited for pipelines.
    pub waiting: Duration,
    /// Number of pipelines built.
    pub pipelines: u32,
}

/// A time that several threads may spend at once. Overlapping periods count once.
#[derive(Debug, Default)]
struct Span {
    active: u32,
    since: Option<Moment>,
    total: Duration,
}

impl Span {
    fn begin(&mut self) {
        if self.active == 0 {
            self.since = Some(Moment::now());
        }
        self.active += 1;
    }

    fn end(&mut self) {
        self.active -= 1;
        if self.active == 0 {
            self.total += self.since.take().map_or(Duration::ZERO, Moment::elapsed);
        }
    }

    fn so_far(&self) -> Duration {
        let running = self.since.map_or(Duration::ZERO, Moment::elapsed);
        self.total + running
    }
}

#[derive(Debug, Default)]
struct Spans {
    opening: Duration,
    planning: Span,
    building: Span,
    waiting: Span,
    pipelines: u32,
}

/// Counts the time of one device.
#[derive(Debug, Default)]
pub(crate) struct Clock(Mutex<Spans>);

/// A running measurement. Dropping it ends the measurement.
pub(crate) struct Running<'a>(&'a Clock, fn(&mut Spans) -> &mut Span);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.with(|spans| (self.1)(spans).end());
    }
}

impl Clock {
    fn with<T>(&self, act: impl FnOnce(&mut Spans) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start(&self, of: fn(&mut Spans) -> &mut Span) -> Running<'_> {
        self.with(|spans| of(spans).begin());
        Running(self, of)
    }

    pub fn opened(&self, after: Duration) {
        self.with(|spans| spans.opening = after);
    }

    pub fn planning(&self) -> Running<'_> {
        self.start(|spans| &mut spans.planning)
    }

    pub fn waiting(&self) -> Running<'_> {
        self.start(|spans| &mut spans.waiting)
    }

    /// Starts the time of one pipeline, and counts the pipeline.
    pub fn building(&self) -> Running<'_> {
        self.with(|spans| spans.pipelines += 1);
        self.start(|spans| &mut spans.building)
    }

    pub fn spent(&self) -> Spent {
        self.with(|spans| Spent {
            opening: spans.opening,
            planning: spans.planning.so_far(),
            building: spans.building.so_far(),
            waiting: spans.waiting.so_far(),
            pipelines: spans.pipelines,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_spend_together_counts_once_and_what_still_runs_counts() {
        let clock = Clock::default();
        let pause = Duration::from_millis(30);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _building = clock.building();
                    std::thread::sleep(pause);
                });
            }
        });
        let Spent { building, pipelines, planning, .. } = clock.spent();
        assert!(building >= pause && building < 4 * pause && pipelines == 4, "{building:?} for {pipelines}");
        assert_eq!(planning, Duration::ZERO);
        let _planning = clock.planning();
        std::thread::sleep(pause);
        assert!(clock.spent().planning >= pause);
    }
}
