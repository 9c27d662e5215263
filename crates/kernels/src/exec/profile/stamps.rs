//! Timestamps around the dispatches of a step.

use super::{Profile, Timed, take_out, work};
use crate::device::Device;
use crate::error::Error;
use crate::exec::cuts::Submits;
use crate::exec::gpu::{GpuPlan, Marks};
use crate::exec::readback::Pool;
use crate::exec::states::States;
use crate::exec::{Compiled, Pending, Plan, Watch};
use crate::graph::input::StepInput;
use crate::platform::Moment;
use std::time::Duration;

/// The timestamps of a step.
struct Stamps {
    device: wgpu::Device,
    /// Whether every dispatch is timed; otherwise every pass.
    each: bool,
    /// The last dispatch of each pass of a step whose passes are timed.
    ends: Vec<usize>,
    /// Whether timestamps are written inside passes. Otherwise a pass writes its own timestamps,
    /// and a timed dispatch has a pass of its own.
    inside: bool,
    sets: Vec<wgpu::QuerySet>,
    /// The dispatch before each timestamp, or `None` at the start of a pass.
    after: Vec<Option<usize>>,
}

const PER_SET: usize = wgpu::QUERY_SET_MAX_QUERIES as usize;
const SET_BYTES: u64 = PER_SET as u64 * 8;

impl Stamps {
    /// The set and the number of the next timestamp. The second of a pair is in the set of the
    /// first.
    fn next(&mut self, after: Option<usize>) -> (&wgpu::QuerySet, u32) {
        let (set, n) = (self.after.len() / PER_SET, self.after.len() % PER_SET);
        if set == self.sets.len() {
            let (ty, count) = (wgpu::QueryType::Timestamp, PER_SET as u32);
            self.sets.push(self.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("profile"),
                ty,
                count,
            }));
        }
        self.after.push(after);
        (&self.sets[set], n as u32)
    }

    /// The time of every timestamp in nanoseconds.
    async fn read(&self, device: &Device) -> Result<Vec<f64>, Error> {
        let bytes = SET_BYTES * self.sets.len() as u64;
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let resolved = device.buffer("the timestamps", bytes, usage).await?;
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        for (n, set) in self.sets.iter().enumerate() {
            let count = (self.after.len() - n * PER_SET).min(PER_SET) as u32;
            encoder.resolve_query_set(set, 0..count, &resolved, SET_BYTES * n as u64);
        }
        let pool = Pool::new(device, 8 * self.after.len() as u64);
        let outputs = device.read(&pool, encoder, &resolved).await?.wait_async().await?;
        let period = f64::from(device.0.queue.get_timestamp_period());
        let ticks = outputs.0[0].chunks_exact(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32);
        Ok(ticks.map(|t| t as f64 * period).collect())
    }
}

impl Marks for Stamps {
    fn most_per_pass(&self) -> usize {
        if self.each && !self.inside { 1 } else { usize::MAX }
    }

    fn pass(&mut self, last: usize) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        if self.inside {
            return None;
        }
        let (_, begin) = self.next(None);
        let (query_set, end) = self.next(Some(last));
        Some(wgpu::ComputePassTimestampWrites {
            query_set,
            beginning_of_pass_write_index: Some(begin),
            end_of_pass_write_index: Some(end),
        })
    }

    fn mark(&mut self, pass: &mut wgpu::ComputePass<'_>, after: Option<usize>) {
        if self.inside && (self.each || after.is_none_or(|n| self.ends.contains(&n))) {
            let (set, n) = self.next(after);
            pass.write_timestamp(set, n);
        }
    }
}

impl Plan {
    /// Runs a step several times, as [`Plan::run_async`] does, and returns the time of every
    /// dispatch. The states are written in every run.
    ///
    /// A timestamp between two dispatches delays the second. So the step also runs without
    /// these timestamps, and the difference is subtracted from all dispatches equally. Times
    /// are medians. The first run is not counted, because drivers do extra work in it. A device
    /// without timestamps inside passes, as in a browser, runs each timed dispatch in a pass of its
    /// own. Browsers round timestamps, to 100 microseconds in Chrome.
    ///
    /// # Errors
    /// [`Error::NoTimestamps`] on the CPU and on devices without timestamps, and the errors of
    /// [`Plan::run_async`].
    pub async fn profile_async(&mut self, states: &mut States, input: &StepInput) -> Result<Profile, Error> {
        let plan = match &mut self.0 {
            Compiled::Cpu(_) => return Err(Error::NoTimestamps { adapter: "CPU".to_string() }),
            Compiled::Gpu(plan) => plan,
        };
        if !plan.device().caps().timestamps {
            return Err(Error::NoTimestamps { adapter: plan.device().adapter().name.clone() });
        }
        let inside = plan.device().0.features.contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES);
        stamped(plan, states, input, false, inside).await?;
        let began = Moment::now();
        let (mut wholes, mut all) = (vec![], vec![]);
        while all.is_empty() || (all.len() < RUNS && began.elapsed() < PATIENCE) {
            wholes.push(stamped(plan, states, input, false, inside).await?.iter().sum());
            all.push(stamped(plan, states, input, true, inside).await?);
        }
        let step_nanoseconds = median(wholes);
        let mut spans: Vec<f64> = (0..all[0].len()).map(|n| median(all.iter().map(|run| run[n]).collect())).collect();
        let stamp_nanoseconds = take_out(&mut spans, step_nanoseconds);
        let ran = plan.planned().dispatches.iter().filter(|placed| placed.dispatch.when.holds(input));
        let timed = ran.zip(spans).map(|(placed, nanoseconds)| {
            let (label, layer) = (placed.shader.label(), placed.stage.layer);
            let cooperative = placed.dispatch.variant.kernel.cooperative();
            Timed { label, layer, cooperative, nanoseconds, work: work(placed, states, input) }
        });
        Ok(Profile { dispatches: timed.collect(), step_nanoseconds, stamp_nanoseconds })
    }
}

/// Number of timed runs. Fewer are made if they take longer than [`PATIENCE`].
const RUNS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(1);

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// One run. Returns the times of its dispatches if `each`, else the times of its passes.
async fn stamped(
    plan: &mut GpuPlan,
    states: &States,
    input: &StepInput,
    each: bool,
    inside: bool,
) -> Result<Vec<f64>, Error> {
    let device = plan.device().clone();
    let (ends, own) = (plan.pass_ends(input), device.0.device.clone());
    let mut stamps = Stamps { device: own, each, ends, inside, sets: vec![], after: vec![] };
    let encoder = plan.encode(states, input, Submits::Whole, Watch::default(), &mut stamps).await?;
    Pending::gpu(plan.finish(encoder, input.counts()).await?).wait_async().await?;
    let times = stamps.read(&device).await?;
    // A timestamp without a dispatch starts a pass. The time before it belongs to no dispatch.
    let spans = stamps.after.iter().skip(1).zip(times.windows(2));
    Ok(spans.filter_map(|(after, span)| after.map(|_| (span[1] - span[0]).max(0.0))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::executor::Executor;
    use crate::device::{Limits, Select};
    use crate::exec::weights::Weights;
    use crate::graph::tensor::{Counts, Lead, Shape};
    use crate::ops::{Recorder, scale, silu};
    use crate::plan::PlanOptions;
    use crate::platform::block_on;
    use std::sync::Arc;

    #[test]
    fn a_dispatch_is_timed_once_inside_a_pass_and_by_a_pass_of_its_own() {
        let device = Device::open(&Select::Best, Limits::Adapter).expect("an adapter, if only the software one");
        let executor = Executor::from(&device);
        let mut rec = Recorder::new(Counts { step: 8, out: 8 }, &[]);
        let x = rec.host_input(0, Shape::new(Lead::Step, 8, 64));
        let y = scale(&mut rec, x, 3.0);
        let y = silu(&mut rec, y);
        rec.output(y);
        let weights = Arc::new(Weights::new(&executor));
        let Compiled::Gpu(mut plan) = executor.plan(rec, &weights, &PlanOptions::plain()).expect("a plan").0 else {
            unreachable!("planned for a GPU")
        };
        let states = States::new(&executor, &[], 1, 8).expect("no states");
        let input = StepInput {
            positions: (0..8).collect(),
            sequences: vec![0; 8],
            host: vec![vec![0.5; 8 * 64]],
            ..StepInput::default()
        };
        for (each, inside, spans) in [(true, true, 2), (true, false, 2), (false, true, 1), (false, false, 1)] {
            let times = block_on(stamped(&mut plan, &states, &input, each, inside)).expect("timestamps");
            assert_eq!(times.len(), spans, "each: {each}, inside: {inside}");
            assert!(times.iter().sum::<f64>() > 0.0, "each: {each}, inside: {inside}: {times:?}");
        }
    }
}
