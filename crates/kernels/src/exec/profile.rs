//! The profiler: the time of every dispatch of a run, with the bytes and arithmetic it needs.

mod stamps;

use crate::exec::states::States;
use crate::graph::input::StepInput;
use crate::graph::operation::Work;
use crate::kernel::dispatch::Arg;
use crate::kernel::{Access, KvUse};
use crate::language::{Lowered, Op};
use crate::plan::Placed;
use cpu_ref::Mask;
use std::collections::HashMap;
use std::fmt;

/// One dispatch of a run.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The kernel and its pieces, written as in a printed plan.
    pub label: String,
    pub layer: Option<u32>,
    /// Whether the kernel multiplies through cooperative matrices.
    pub cooperative: bool,
    /// From the end of the previous dispatch, or the start of this one's pass, to the end of this
    /// one, less the cost of a timestamp.
    pub nanoseconds: f64,
    /// The bytes and arithmetic that this step's rows and positions require.
    pub work: Work,
}

/// All dispatches that ran one kernel.
#[derive(Clone, Debug)]
pub struct Total {
    pub label: String,
    /// See [`Timed::cooperative`].
    pub cooperative: bool,
    pub count: usize,
    pub nanoseconds: f64,
    /// Share of the time of the whole profile, 0 to 1.
    pub share: f64,
    pub work: Work,
}

/// The dispatches of one or more runs.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// In the order of the run.
    pub dispatches: Vec<Timed>,
    /// Device time of the whole step, measured without timestamps between its dispatches.
    pub step_nanoseconds: f64,
    /// Time that each timestamp adds to the step. It is subtracted from every dispatch.
    pub stamp_nanoseconds: f64,
}

/// The measured limit of a device, which operations are compared with.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Roof {
    pub gb_per_s: f64,
    pub tflop_per_s: f64,
    /// The limit of kernels with cooperative matrices; `None` on a device without them.
    pub cooperative_tflop_per_s: Option<f64>,
}

impl Roof {
    /// The shortest possible time for these bytes and operations, in nanoseconds. `cooperative`
    /// says whether cooperative matrices multiply.
    #[must_use]
    pub fn nanoseconds(&self, bytes: f64, flops: f64, cooperative: bool) -> f64 {
        let matrices = self.cooperative_tflop_per_s.filter(|_| cooperative);
        (bytes / self.gb_per_s).max(flops / (matrices.unwrap_or(self.tflop_per_s) * 1e3))
    }
}

impl Total {
    /// The shortest possible time under this roof, in nanoseconds.
    fn least(&self, roof: &Roof) -> f64 {
        roof.nanoseconds(self.work.bytes as f64, self.work.flops as f64, self.cooperative)
    }
}

/// Subtracts the same cost from every span, so that the spans sum up to `whole`. Spans shorter than
/// the cost become 0. Returns the cost, which is 0 if the sum is not above `whole`.
fn take_out(spans: &mut [f64], whole: f64) -> f64 {
    let mut sorted = spans.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut cost) = (0.0, 0.0);
    for (n, span) in sorted.iter().enumerate() {
        // The cost if this span is included. Spans shorter than the cost become 0.
        let each = (sum + span - whole) / (n + 1) as f64;
        if each >= *span {
            break;
        }
        (sum, cost) = (sum + span, each.max(0.0));
    }
    spans.iter_mut().for_each(|span| *span = (*span - cost).max(0.0));
    cost
}

fn rate(amount: u64, nanoseconds: f64) -> f64 {
    if nanoseconds > 0.0 { amount as f64 / nanoseconds } else { 0.0 }
}

impl Timed {
    /// Gigabytes per second, counting only the bytes that the operation must move.
    #[must_use]
    pub fn gb_per_s(&self) -> f64 {
        rate(self.work.bytes, self.nanoseconds)
    }

    /// Floating-point operations per second, in units of 10^12.
    #[must_use]
    pub fn tflop_per_s(&self) -> f64 {
        rate(self.work.flops, self.nanoseconds) / 1e3
    }
}

impl Total {
    /// See [`Timed::gb_per_s`].
    #[must_use]
    pub fn gb_per_s(&self) -> f64 {
        rate(self.work.bytes, self.nanoseconds)
    }

    /// See [`Timed::tflop_per_s`].
    #[must_use]
    pub fn tflop_per_s(&self) -> f64 {
        rate(self.work.flops, self.nanoseconds) / 1e3
    }
}

impl Profile {
    /// The sum of the times of all dispatches.
    #[must_use]
    pub fn nanoseconds(&self) -> f64 {
        self.dispatches.iter().map(|d| d.nanoseconds).sum()
    }

    /// The sum of the work of all dispatches.
    #[must_use]
    pub fn work(&self) -> Work {
        self.dispatches.iter().map(|d| d.work).fold(Work::default(), Work::plus)
    }

    /// The dispatches summed by kernel, longest first.
    #[must_use]
    pub fn by_kernel(&self) -> Vec<Total> {
        let (mut totals, mut places) = (Vec::<Total>::new(), HashMap::new());
        for d in &self.dispatches {
            let at = *places.entry(&d.label).or_insert_with(|| {
                let (label, work) = (d.label.clone(), Work::default());
                totals.push(Total { label, cooperative: d.cooperative, count: 0, nanoseconds: 0.0, share: 0.0, work });
                totals.len() - 1
            });
            let total = &mut totals[at];
            total.count += 1;
            total.nanoseconds += d.nanoseconds;
            total.work = total.work.plus(d.work);
        }
        let all = self.nanoseconds().max(f64::MIN_POSITIVE);
        totals.iter_mut().for_each(|t| t.share = t.nanoseconds / all);
        totals.sort_by(|a, b| b.nanoseconds.total_cmp(&a.nanoseconds));
        totals
    }

    /// Adds the dispatches of another run.
    pub fn extend(&mut self, other: Self) {
        self.dispatches.extend(other.dispatches);
        self.step_nanoseconds += other.step_nanoseconds;
        self.stamp_nanoseconds = self.stamp_nanoseconds.max(other.stamp_nanoseconds);
    }

    /// The share of the step's time that its dispatches account for, 0 to 1.
    #[must_use]
    pub fn attributed(&self) -> f64 {
        if self.step_nanoseconds > 0.0 { self.nanoseconds() / self.step_nanoseconds } else { 0.0 }
    }

    /// A table with one line per kernel, a line of sums, and a line about the measurement. If the
    /// roof is known, each line has its share of the roof: the shortest possible time of its work,
    /// as a share of its time.
    #[must_use]
    pub fn table(&self, roof: Option<&Roof>) -> String {
        let totals = self.by_kernel();
        let width = totals.iter().map(|t| t.label.len()).max().unwrap_or(0).max("kernel".len());
        let line = |label: &str, count: usize, ns: f64, share: f64, work: Work, least: Option<f64>| {
            let of_roof = least.map_or_else(
                || "-".to_string(),
                |least| format!("{:.1}%", 100.0 * if ns > 0.0 { least / ns } else { 0.0 }),
            );
            let (us, gb_per_s, tflop_per_s) = (ns / 1e3, rate(work.bytes, ns), rate(work.flops, ns) / 1e3);
            let share = 100.0 * share;
            format!(
                "{label:<width$} {count:>6} {us:>9.1} us {share:>6.1}% {gb_per_s:>8.1} {tflop_per_s:>8.2} {of_roof:>6}\n"
            )
        };
        let mut text = format!(
            "{:<width$} {:>6} {:>12} {:>7} {:>8} {:>8} {:>6}\n",
            "kernel", "count", "time", "share", "GB/s", "TFLOP/s", "roof"
        );
        let least = |total: &Total| roof.map(|roof| total.least(roof));
        totals.iter().for_each(|t| text.push_str(&line(&t.label, t.count, t.nanoseconds, t.share, t.work, least(t))));
        let all = roof.map(|roof| totals.iter().map(|total| total.least(roof)).sum());
        text.push_str(&line("all", self.dispatches.len(), self.nanoseconds(), self.attributed(), self.work(), all));
        let (step, stamp) = (self.step_nanoseconds / 1e3, self.stamp_nanoseconds / 1e3);
        text + &format!(
            "the step takes {step:.1} us without timestamps inside it; each timestamp costs {stamp:.2} us, already subtracted"
        )
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(None))
    }
}

/// The work of one dispatch of a run: the work of its operation, plus the rows of KV states that it
/// reads or writes. Keys and values that several rows of a sequence see are counted once.
#[must_use]
pub fn work(placed: &Placed, states: &States, input: &StepInput) -> Work {
    let mut work = placed.work(input.counts());
    for ((_, access), arg) in placed.dispatch.variant.kernel.bindings.iter().zip(&placed.dispatch.args) {
        let Arg::State(state) = arg else { continue };
        let row_bytes = states.kind(*state).row_bytes() as u64;
        let attention = match &*placed.op {
            Lowered::Op(Op::Attention(attention)) => attention.cached(),
            Lowered::AttentionSplit(split) => Some(split.of),
            Lowered::AttentionByLength(by) => Some(by.of),
            Lowered::AttentionDecode(decode) => Some(decode.split.of),
            Lowered::MergeMatmulVec(merge) => Some(merge.attention.split.of),
            Lowered::AttentionDecodeRowsF16(batch) => Some(batch.split.of),
            _ => None,
        };
        match (access, attention) {
            (Access::Kv(KvUse::Write), _) => work.bytes += row_bytes * input.positions.len() as u64,
            (Access::Kv(_), Some(attention)) => {
                let (pairs, keys) = seen(attention.attend.mask, states.rows(*state), input);
                work.bytes += row_bytes * keys;
                work.flops += 2 * pairs * u64::from(attention.q.shape.width());
            }
            _ => {}
        }
    }
    work
}

/// The number of visible (row, key) pairs, and the number of keys that at least one row sees.
fn seen(mask: Mask, capacity: u32, input: &StepInput) -> (u64, u64) {
    let (mut pairs, mut spans) = (0, HashMap::<u32, (usize, usize)>::new());
    for (t, (&position, &sequence)) in input.positions.iter().zip(&input.sequences).enumerate() {
        let end = if mask == Mask::Bidirectional { input.ends[t] as usize } else { position as usize + 1 };
        let range = mask.visible(position as usize, end);
        pairs += range.len() as u64;
        let span = spans.entry(sequence).or_insert((range.start, range.end));
        *span = (span.0.min(range.start), span.1.max(range.end));
    }
    let keys = spans.values().map(|(start, end)| (end.saturating_sub(*start) as u64).min(u64::from(capacity)));
    (pairs, keys.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stamps_cost_is_taken_from_all_alike() {
        let mut spans = [10.0, 7.0, 25.0];
        assert_eq!(take_out(&mut spans, 30.0), 4.0);
        assert_eq!(spans, [6.0, 3.0, 21.0]);
    }

    #[test]
    fn a_span_shorter_than_a_stamp_gives_what_it_has_and_the_sum_holds() {
        let mut spans = [10.0, 1.0, 25.0];
        let cost = take_out(&mut spans, 26.0);
        assert_eq!((cost, spans), (4.5, [5.5, 0.0, 20.5]));
    }

    #[test]
    fn nothing_is_added_where_stamps_cost_nothing() {
        let mut spans = [1.0, 2.0];
        assert_eq!(take_out(&mut spans, 5.0), 0.0);
        assert_eq!(spans, [1.0, 2.0]);
        let profile = Profile { step_nanoseconds: 4.0, ..Profile::default() };
        assert_eq!(profile.attributed(), 0.0);
        assert_eq!(take_out(&mut [], 5.0), 0.0);
    }

    #[test]
    fn the_roof_is_the_slower_of_reading_and_computing() {
        let roof = Roof { gb_per_s: 100.0, tflop_per_s: 1.0, cooperative_tflop_per_s: Some(8.0) };
        assert_eq!(roof.nanoseconds(1000.0, 0.0, false), 10.0);
        assert_eq!(roof.nanoseconds(1000.0, 100_000.0, false), 100.0);
        assert_eq!(roof.nanoseconds(1000.0, 100_000.0, true), 12.5);
        let none = Roof { cooperative_tflop_per_s: None, ..roof };
        assert_eq!(none.nanoseconds(0.0, 100_000.0, true), 100.0, "no such matrices");
    }

    #[test]
    fn each_kernel_has_the_roof_of_its_own_products() {
        let roof = Roof { gb_per_s: 100.0, tflop_per_s: 1.0, cooperative_tflop_per_s: Some(10.0) };
        let work = Work { flops: 100_000, ..Work::default() };
        let timed = |label: &str, cooperative| Timed {
            label: label.to_string(),
            layer: None,
            cooperative,
            nanoseconds: 200.0,
            work,
        };
        let profile = Profile { dispatches: vec![timed("plain", false), timed("tiles", true)], ..Profile::default() };
        let table = profile.table(Some(&roof));
        let share = |name: &str| {
            table
                .lines()
                .find(|line| line.starts_with(name))
                .and_then(|line| line.split_whitespace().last())
                .map(String::from)
        };
        assert_eq!(
            ["plain", "tiles", "all"].map(share),
            ["50.0%", "5.0%", "27.5%"].map(|share| Some(share.to_string())),
            "{table}"
        );
    }
}
