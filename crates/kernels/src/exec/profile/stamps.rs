//! Timestamps around the dispatches of a step.

use super::{Profile, Timed, take_out, work};
use crate::device::Device;
use crate::error::Error;
use crate::exec::cuts::Submits;
use crate::exec::gpu::GpuPlan;
use crate::exec::readback::Pool;
use crate::exec::states::States;
use crate::exec::{Compiled, Pending, Plan, Watch};
use crate::graph::input::StepInput;
use crate::platform::Moment;
use std::time::Duration;

/// The timestamps written so far. `after` has the number of the dispatch before each timestamp, or
/// `None` at the start of a pass.
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
            self.sets.push(self.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("profile"),
                ty,
                count,
            }));
        }
        pass.write_timestamp(&self.sets[set], n as u32);
        self.after.push(after);
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

impl Plan {
    /// Runs a step several times, as [`Plan::run_async`] does, and returns the time of every
    /// dispatch. The states are written in every run.
    ///
    /// A timestamp between two dispatches delays the second. So the step also runs without
    /// these timestamps, and the difference is subtracted from all dispatches equally. Times
    /// are medians. The first run is not counted, because drivers do extra work in it.
    ///
    /// # Errors
    /// [`Error::NoTimestamps`] on the CPU and on devices without timestamps inside passes, and
    /// the errors of [`Plan::run_async`].
    pub async fn profile_async(&mut self, states: &mut States, input: &StepInput) -> Result<Profile, Error> {
        let plan = match &mut self.0 {
            Compiled::Cpu(_) => return Err(Error::NoTimestamps { adapter: "CPU".to_string() }),
            Compiled::Gpu(plan) => plan,
        };
        if !plan.device().caps().timestamps {
            return Err(Error::NoTimestamps { adapter: plan.device().adapter().name.clone() });
        }
        stamped(plan, states, input, false).await?;
        let began = Moment::now();
        let (mut wholes, mut all) = (vec![], vec![]);
        while all.is_empty() || (all.len() < RUNS && began.elapsed() < PATIENCE) {
            wholes.push(stamped(plan, states, input, false).await?.iter().sum());
            all.push(stamped(plan, states, input, true).await?);
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
async fn stamped(plan: &mut GpuPlan, states: &States, input: &StepInput, each: bool) -> Result<Vec<f64>, Error> {
    let device = plan.device().clone();
    let mut stamps = Stamps { device: device.0.device.clone(), sets: vec![], after: vec![] };
    let ends = if each { vec![] } else { plan.pass_ends(input) };
    let mut mark = |pass: &mut wgpu::ComputePass<'_>, after: Option<usize>| {
        if each || after.is_none_or(|n| ends.contains(&n)) {
            stamps.write(pass, after);
        }
    };
    let encoder = plan.encode(states, input, Submits::Whole, Watch::default(), &mut mark).await?;
    Pending::gpu(plan.finish(encoder, input.counts()).await?).wait_async().await?;
    let times = stamps.read(&device).await?;
    // A timestamp without a dispatch starts a pass. The time before it belongs to no dispatch.
    let spans = stamps.after.iter().skip(1).zip(times.windows(2));
    Ok(spans.filter_map(|(after, span)| after.map(|_| (span[1] - span[0]).max(0.0))).collect())
}
