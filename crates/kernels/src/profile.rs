//! The profiler: the time of every dispatch of a run, beside the bytes and the arithmetic that it stands for.

use crate::exec::StepInput;
use crate::ops::{Op, Work};
use crate::plan::{Arg, Step};
use crate::row::Access;
use crate::states::States;
use cpu_ref::Mask;
use std::collections::HashMap;
use std::fmt;

/// One dispatch of a run.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The kernel with its pieces, as in a printed plan.
    pub label: String,
    pub layer: Option<u32>,
    /// From the end of the dispatch before it to its own.
    pub nanoseconds: f64,
    /// What it had to move and compute at this step's rows and positions.
    pub work: Work,
}

/// All dispatches that ran one kernel.
#[derive(Clone, Debug)]
pub struct Total {
    pub label: String,
    pub count: usize,
    pub nanoseconds: f64,
    /// Of the whole profile's time, 0 to 1.
    pub share: f64,
    pub work: Work,
}

/// The dispatches of one run, or of several.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// In the order of the run.
    pub dispatches: Vec<Timed>,
}

fn rate(amount: u64, nanoseconds: f64) -> f64 {
    if nanoseconds > 0.0 { amount as f64 / nanoseconds } else { 0.0 }
}

impl Timed {
    /// Gigabytes per second, of the fewest bytes that the operation must move.
    #[must_use]
    pub fn gb_per_s(&self) -> f64 {
        rate(self.work.bytes, self.nanoseconds)
    }

    /// Tera-operations per second.
    #[must_use]
    pub fn tflop_per_s(&self) -> f64 {
        rate(self.work.flops, self.nanoseconds) / 1e3
    }
}

impl Total {
    /// As [`Timed::gb_per_s`].
    #[must_use]
    pub fn gb_per_s(&self) -> f64 {
        rate(self.work.bytes, self.nanoseconds)
    }

    /// As [`Timed::tflop_per_s`].
    #[must_use]
    pub fn tflop_per_s(&self) -> f64 {
        rate(self.work.flops, self.nanoseconds) / 1e3
    }
}

impl Profile {
    /// The time of all dispatches.
    #[must_use]
    pub fn nanoseconds(&self) -> f64 {
        self.dispatches.iter().map(|d| d.nanoseconds).sum()
    }

    /// The work of all dispatches.
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
                totals.push(Total { label, count: 0, nanoseconds: 0.0, share: 0.0, work });
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
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = self.by_kernel();
        let width = totals.iter().map(|t| t.label.len()).max().unwrap_or(0).max("kernel".len());
        writeln!(f, "{:<width$} {:>6} {:>10} {:>7} {:>8} {:>8}", "kernel", "count", "time", "share", "GB/s", "TFLOP/s")?;
        for t in &totals {
            let (us, percent) = (t.nanoseconds / 1e3, 100.0 * t.share);
            writeln!(f, "{:<width$} {:>6} {us:>7.1} us {percent:>6.1}% {:>8.1} {:>8.2}", t.label, t.count, t.gb_per_s(), t.tflop_per_s())?;
        }
        let (count, ns, work) = (self.dispatches.len(), self.nanoseconds(), self.work());
        let (us, gb_per_s, tflop_per_s) = (ns / 1e3, rate(work.bytes, ns), rate(work.flops, ns) / 1e3);
        write!(f, "{:<width$} {count:>6} {us:>7.1} us {:>7} {gb_per_s:>8.1} {tflop_per_s:>8.2}", "all", "")
    }
}

/// The work of one dispatch of a run. To what its operation counts this adds the rows of KV states: keys and values that
/// several rows of a sequence see are moved once.
#[must_use]
pub fn work(step: &Step, states: &States, input: &StepInput) -> Work {
    let mut work = step.work(input.counts());
    for ((_, access), arg) in step.dispatch.row.bindings.iter().zip(&step.dispatch.args) {
        let Arg::State(state) = arg else { continue };
        let row_bytes = states.kind(*state).row_bytes() as u64;
        let attention = match &*step.op {
            Op::Attention(attention) => Some(attention),
            Op::AttentionSplit(split) => Some(&split.of),
            _ => None,
        };
        match (access, attention) {
            (Access::KvMut, _) => work.bytes += row_bytes * input.positions.len() as u64,
            (Access::Kv, Some(attention)) => {
                let (pairs, keys) = seen(attention.attend.mask, states.rows(*state), input);
                work.bytes += row_bytes * keys;
                work.flops += 2 * pairs * u64::from(attention.q.shape.width());
            }
            _ => {}
        }
    }
    work
}

/// Pairs of a row and a key that it sees, and keys that some row sees.
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

#[cfg(not(target_arch = "wasm32"))]
mod stamps {
    use super::{Profile, StepInput, Timed, work};
    use crate::device::Device;
    use crate::error::Error;
    use crate::exec::readback::Pool;
    use crate::exec::{Pending, Plan, Watch};
    use crate::states::States;

    /// Timestamps written so far, and after which dispatch each was.
    struct Stamps {
        device: wgpu::Device,
        sets: Vec<wgpu::QuerySet>,
        after: Vec<Option<usize>>,
    }

    const PER_SET: usize = wgpu::QUERY_SET_MAX_QUERIES as usize;
    const SET_BYTES: u64 = PER_SET as u64 * 8;

    impl Stamps {
        fn write(&mut self, pass: &mut wgpu::ComputePass<'_>, after: Option<usize>) {
            let (set, n) = (self.after.len() / PER_SET, self.after.len() % PER_SET);
            if set == self.sets.len() {
                let (ty, count) = (wgpu::QueryType::Timestamp, PER_SET as u32);
                self.sets.push(self.device.create_query_set(&wgpu::QuerySetDescriptor { label: Some("profile"), ty, count }));
            }
            pass.write_timestamp(&self.sets[set], n as u32);
            self.after.push(after);
        }

        /// The nanosecond of every stamp.
        fn read(&self, device: &Device) -> Result<Vec<f64>, Error> {
            let bytes = SET_BYTES * self.sets.len() as u64;
            let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
            let resolved = device.buffer("the timestamps", bytes, usage)?;
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for (n, set) in self.sets.iter().enumerate() {
                let count = (self.after.len() - n * PER_SET).min(PER_SET) as u32;
                encoder.resolve_query_set(set, 0..count, &resolved, SET_BYTES * n as u64);
            }
            let outputs = device.read(&Pool::new(device, 8 * self.after.len() as u64), encoder, &resolved)?.wait()?;
            let period = f64::from(device.0.queue.get_timestamp_period());
            let ticks = outputs.0[0].chunks_exact(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32);
            Ok(ticks.map(|t| t as f64 * period).collect())
        }
    }

    impl Plan {
        /// Runs a step as [`Plan::run`] does, states included, and gives the time of every dispatch. The first run of a plan
        /// pays for what drivers do late; profile a later one.
        ///
        /// # Errors
        /// [`Error::NoTimestamps`] on the CPU and on devices without timestamps inside passes, and those of [`Plan::run`].
        pub fn profile(&mut self, states: &mut States, input: &StepInput) -> Result<Profile, Error> {
            let plan = match self {
                Self::Cpu(_) => return Err(Error::NoTimestamps { adapter: "CPU".to_string() }),
                Self::Gpu(plan) => plan,
            };
            let device = plan.device().clone();
            if !device.caps().timestamps {
                return Err(Error::NoTimestamps { adapter: device.adapter().name.clone() });
            }
            let mut stamps = Stamps { device: device.0.device.clone(), sets: vec![], after: vec![] };
            let encoder = plan.encode(states, input, Watch::default(), &mut |pass, after| stamps.write(pass, after))?;
            Pending::Gpu(plan.finish(encoder, input.counts())?).wait()?;
            let times = stamps.read(&device)?;
            let spans = stamps.after.iter().skip(1).zip(times.windows(2));
            let timed = spans.filter_map(|(after, span)| {
                let step = &plan.planned().steps[(*after)?];
                let nanoseconds = (span[1] - span[0]).max(0.0);
                Some(Timed { label: step.kernel.label(), layer: step.layer, nanoseconds, work: work(step, states, input) })
            });
            Ok(Profile { dispatches: timed.collect() })
        }
    }
}
