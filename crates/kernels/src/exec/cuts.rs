//! Where a plan is cut into submits, and how far a run is at each cut.

use super::watch::{Passed, Watch};
use crate::caps::Class;
use crate::caps::table::steps::{EARLY_DISPATCHES, PASS_DISPATCHES};
use crate::error::Error;
use crate::graph::operation::Work;
use crate::graph::record::{Phase, Stage};
use crate::graph::tensor::Counts;
use crate::plan::Placed;
use gguf::Progress;
use std::ops::Range;

/// The longest submit of a class of adapters, in seconds, at the rates of a slow adapter of that
/// class. Windows resets a device after two seconds. During a submit, a display that the adapter
/// drives stands still.
struct Watchdog {
    seconds: f64,
    flops_per_s: f64,
    bytes_per_s: f64,
}

impl Watchdog {
    /// `None` for adapters whose driver stops no long submit.
    fn of(class: Class) -> Option<Self> {
        match class {
            Class::Discrete | Class::Virtual => Some(Self { seconds: 1.0, flops_per_s: 2e12, bytes_per_s: 1e11 }),
            Class::Integrated | Class::Unknown => Some(Self { seconds: 0.5, flops_per_s: 1e11, bytes_per_s: 1e10 }),
            Class::Software => None,
        }
    }

    fn seconds(&self, work: Work) -> f64 {
        (work.flops as f64 / self.flops_per_s).max(work.bytes as f64 / self.bytes_per_s)
    }
}

/// What follows the last dispatch of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A submit, so that the device begins while the host encodes the next pass.
    Early,
    /// A submit, after which a run can be cancelled, and how far the run is.
    Cut(Passed),
    /// The copies for the read-back.
    Last,
}

/// How a step is submitted between its cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submits {
    /// The host encodes all dispatches, then submits them. The device runs earlier steps meanwhile.
    Whole,
    /// The host submits the first dispatches early, because the device has nothing to run.
    Early,
}

/// The steps of each pass, and what follows it.
pub(super) struct Passes {
    /// A cut is where the work would exceed the longest submit, or at every layer.
    whole: Vec<(Range<usize>, End)>,
    /// The cuts of these steps, with early submits.
    early: Vec<(Range<usize>, End)>,
}

impl Passes {
    /// `every_layer`: with a cut at every layer. A software device has no early submits, because
    /// the cores that encode are the cores that run.
    pub fn of(steps: &[Placed], capacity: Counts, class: Class, every_layer: bool) -> Self {
        let works: Vec<(Stage, Work)> = steps.iter().map(|placed| (placed.stage, placed.work(capacity))).collect();
        let whole = cut(&works, class, every_layer);
        let early = if class == Class::Software { whole.clone() } else { early(whole.clone()) };
        Self { whole, early }
    }

    pub fn submitted(&self, submits: Submits) -> &[(Range<usize>, End)] {
        match submits {
            Submits::Whole => &self.whole,
            Submits::Early => &self.early,
        }
    }
}

/// Divides long passes.
fn early(passes: Vec<(Range<usize>, End)>) -> Vec<(Range<usize>, End)> {
    let mut divided = vec![];
    for (Range { mut start, end }, then) in passes {
        let mut size = EARLY_DISPATCHES;
        while end - start >= 2 * size {
            divided.push((start..start + size, End::Early));
            start += size;
            size = PASS_DISPATCHES.min(2 * size);
        }
        divided.push((start..end, then));
    }
    divided
}

fn cut(works: &[(Stage, Work)], class: Class, every_layer: bool) -> Vec<(Range<usize>, End)> {
    let watchdog = Watchdog::of(class);
    let mut far = Far::over(works.iter().map(|(stage, _)| *stage));
    let (mut passes, mut first, mut seconds) = (vec![], 0, 0.0);
    for (at, (stage, work)) in works.iter().enumerate() {
        let own = watchdog.as_ref().map_or(0.0, |w| w.seconds(*work));
        let full = watchdog.as_ref().is_some_and(|w| seconds + own > w.seconds);
        let next = every_layer && at > 0 && works[at - 1].0 != *stage;
        let progress = far.at(*stage);
        if at > first && (full || next) {
            passes.push((first..at, End::Cut(progress)));
            (first, seconds) = (at, 0.0);
        }
        seconds += own;
    }
    passes.push((first..works.len(), End::Last));
    passes
}

/// How far a run is: counts the layers of each phase.
pub(super) struct Far {
    layers: u32,
    now: Passed,
}

impl Far {
    /// Before the first of these stages.
    pub fn over(stages: impl Iterator<Item = Stage>) -> Self {
        let layers = stages.filter_map(|stage| stage.layer).max().map_or(0, |l| l + 1);
        Self { layers, now: Passed { phase: Phase::Forward, done: 0, total: layers } }
    }

    /// Before an operation of this stage. Stages without a layer, in front of the layers of a phase
    /// or behind them, do not count.
    pub fn at(&mut self, stage: Stage) -> Passed {
        let done = match (stage.phase, stage.layer) {
            (Phase::Forward, Some(layer)) => layer,
            (Phase::Backward, Some(layer)) => self.layers - 1 - layer,
            (phase, None) if phase == self.now.phase => self.now.done,
            (_, None) => 0,
        };
        self.now = Passed { phase: stage.phase, done, total: self.layers };
        self.now
    }

    pub fn now(&self) -> Passed {
        self.now
    }
}

impl Watch<'_> {
    /// Reports how far a run is, and looks whether it is cancelled.
    pub(crate) fn at(&self, passed: Passed) -> Result<(), Error> {
        if let Some(report) = self.progress {
            let Passed { phase, done, total } = passed;
            report(phase, Progress { done: done.into(), total: total.into() });
        }
        self.go_on()
    }

    /// Looks whether the run is cancelled.
    pub(crate) fn go_on(&self) -> Result<(), Error> {
        match self.cancel {
            Some(flag) if flag.load(std::sync::atomic::Ordering::Relaxed) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two layers forward, a head, and the layers back. Each operation takes this many flops.
    fn there_and_back(flops: u64) -> Vec<(Stage, Work)> {
        let (forward, backward) = (Phase::Forward, Phase::Backward);
        let stages = [(forward, None), (forward, Some(0)), (forward, Some(0)), (forward, Some(1)), (backward, None)];
        let back = [(backward, Some(1)), (backward, Some(0)), (backward, Some(0)), (backward, None)];
        let work = Work { flops, ..Work::default() };
        stages.into_iter().chain(back).map(|(phase, layer)| (Stage { phase, layer }, work)).collect()
    }

    fn ends(passes: &[(Range<usize>, End)]) -> Vec<usize> {
        passes.iter().map(|(range, _)| range.end).collect()
    }

    #[test]
    fn layers_that_fall_are_cut_like_layers_that_rise() {
        let passes = cut(&there_and_back(1), Class::Software, true);
        assert_eq!(ends(&passes), [1, 3, 4, 5, 6, 8, 9]);
        let told: Vec<_> = passes
            .iter()
            .filter_map(|(_, end)| match end {
                End::Cut(p) => Some((p.phase, p.done, p.total)),
                End::Early | End::Last => None,
            })
            .collect();
        let (forward, backward) = (Phase::Forward, Phase::Backward);
        assert_eq!(
            told,
            [(forward, 0, 2), (forward, 1, 2), (backward, 0, 2), (backward, 0, 2), (backward, 1, 2), (backward, 1, 2)]
        );
    }

    #[test]
    fn a_step_is_submitted_whole_or_begins_early() {
        let (whole, long) = (vec![(0..70, End::Last)], vec![(0..16, End::Early), (16..70, End::Last)]);
        let passes = Passes { early: early(whole.clone()), whole: whole.clone() };
        assert_eq!((passes.submitted(Submits::Early), passes.submitted(Submits::Whole)), (&long[..], &whole[..]));
    }

    #[test]
    fn a_long_pass_begins_early() {
        let passes = |n: usize| early(vec![(0..n, End::Last)]);
        assert_eq!(passes(31), [(0..31, End::Last)]);
        assert_eq!(passes(32), [(0..16, End::Early), (16..32, End::Last)]);
        assert_eq!(ends(&passes(727)), [16, 48, 112, 176, 240, 304, 368, 432, 496, 560, 624, 727]);
        let far = Passed { phase: Phase::Forward, done: 1, total: 2 };
        let cut = early(vec![(0..70, End::Cut(far)), (70..80, End::Last)]);
        assert_eq!(cut, [(0..16, End::Early), (16..70, End::Cut(far)), (70..80, End::Last)]);
    }

    #[test]
    fn a_submit_ends_before_its_work_is_too_long() {
        let uncut = [9];
        assert_eq!(ends(&cut(&there_and_back(1_000_000_000), Class::Discrete, false)), uncut);
        // At the rates of a slow discrete adapter, an operation takes 0.4 s, so two fit in a
        // submit.
        assert_eq!(ends(&cut(&there_and_back(800_000_000_000), Class::Discrete, false)), [2, 4, 6, 8, 9]);
        // An operation that is too long alone has a submit of its own.
        assert_eq!(ends(&cut(&there_and_back(800_000_000_000), Class::Integrated, false)), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(ends(&cut(&there_and_back(800_000_000_000), Class::Software, false)), uncut);
    }
}
