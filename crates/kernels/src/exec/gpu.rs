//! The GPU executor: binds a plan once, then encodes and submits it.

use super::angles::Angles;
use super::cuts::{End, Far, Passes, Submits};
use super::inputs::{Inputs, Sources};
use super::pending::Pending;
use super::readback::{Pool, Read};
use super::watch::Watch;
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::pipelines::Pipeline;
use crate::error::Error;
use crate::exec::room::Room;
use crate::exec::states::{States, Store};
use crate::exec::weights::Weights;
use crate::graph::input::StepInput;
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Place, Shape, StateKind, Tensor};
use crate::kernel::dispatch::Arg;
use crate::language::Primitive;
use crate::plan::{PlanOptions, Planned, plan};
use std::sync::Arc;

/// A plan with all its pipelines and buffers on its device. A run creates no new ones.
pub struct GpuPlan {
    device: Device,
    planned: Planned,
    states: Vec<StateKind>,
    ropes: Vec<Angles>,
    origins: Vec<Shape>,
    weights: Arc<Weights>,
    pipelines: Vec<Arc<Pipeline>>,
    passes: Passes,
    buffers: Vec<Buffer>,
    inputs: Inputs,
    dummy: Buffer,
    spare: Buffer,
    bound: Option<Bound>,
    pool: Arc<Pool>,
}

/// Extra bytes after each intermediate of a guarded plan: 256 threads that write a vector each.
const GUARD_BYTES: u64 = 4096;

/// Timestamps that are written while a step is encoded. By default there are none.
pub(crate) trait Marks: Send {
    /// Most dispatches of a pass.
    fn most_per_pass(&self) -> usize {
        usize::MAX
    }

    /// The timestamps of the next pass, whose last dispatch is `last`.
    fn pass(&mut self, _last: usize) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        None
    }

    /// Called at the start of each pass with `None`, and after each dispatch with its index.
    fn mark(&mut self, _pass: &mut wgpu::ComputePass<'_>, _after: Option<usize>) {}
}

impl Marks for () {}

struct Bound {
    generation: u64,
    /// The parameters of all dispatches.
    _params: Buffer,
    /// The bind groups of every dispatch: one, or one per input slot if the dispatch reads inputs.
    groups: Vec<Vec<wgpu::BindGroup>>,
}

impl GpuPlan {
    pub(super) async fn new<O: Clone + Into<Primitive>>(
        device: &Device,
        rec: Recorder<O>,
        weights: Arc<Weights>,
        options: &PlanOptions,
        room: &mut Room,
    ) -> Result<Self, Error> {
        let planning = device.0.clock.planning();
        let planned = plan(&rec, device.caps(), options)?;
        drop(planning);
        let pipelines = device.pipelines(planned.dispatches.iter().map(|s| &s.shader)).await?;
        let _planning = device.0.clock.planning();
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let guard = if options.guarded { GUARD_BYTES } else { 0 };
        let sizes: Vec<u64> = planned.placement.buffers.iter().map(|bytes| bytes + guard).collect();
        let buffers = room.buffers(device, &sizes).await?;
        let inputs = Inputs::new(device, planned.placement.input_bytes).await?;
        let dummy = device.buffer("an unused binding", 16, usage).await?;
        let spare = device.buffer("an unused result", 16, usage).await?;
        let bytes = planned.read_back.iter().map(|t| 4 * t.shape.elements()).sum::<u64>();
        let pool = Pool::new(device, bytes);
        let (states, origins) = (rec.states, rec.origins.iter().map(|o| o.1).collect());
        let ropes = rec.ropes.iter().map(Angles::new).collect();
        let passes = Passes::of(&planned.dispatches, planned.capacity, device.adapter().class, options.every_layer);
        let device = device.clone();
        Ok(Self {
            device,
            planned,
            states,
            ropes,
            origins,
            weights,
            pipelines,
            passes,
            buffers,
            inputs,
            dummy,
            spare,
            bound: None,
            pool,
        })
    }

    /// The plan as data.
    #[must_use]
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// The buffer of the n-th result.
    #[cfg(feature = "interop")]
    pub(super) fn result(&self, n: usize) -> Option<&wgpu::Buffer> {
        let tensor = self.planned.read_back.get(n)?;
        self.planned.placement.slots.get(&tensor.id).map(|&slot| &*self.buffers[slot])
    }

    /// The device that the plan runs on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn poison(&self, word: u32) {
        for buffer in self.buffers.iter().chain([&self.dummy]) {
            let words = vec![word; buffer.size() as usize / 4];
            self.device.0.queue.write_buffer(buffer, 0, bytemuck::cast_slice(&words));
        }
    }

    /// Whether a kernel wrote past the end of an intermediate. The plan must be guarded. Call it
    /// after [`GpuPlan::poison`] with this word and a run.
    pub(super) async fn overrun(&self, poison: u32) -> Result<bool, Error> {
        let pool = Pool::new(&self.device, GUARD_BYTES * self.buffers.len() as u64);
        let target = pool.take().await?;
        let mut encoder = self.device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut ranges = vec![];
        for (buffer, &bytes) in self.buffers.iter().zip(&self.planned.placement.buffers) {
            let at = GUARD_BYTES * ranges.len() as u64;
            encoder.copy_buffer_to_buffer(buffer, bytes, &target, at, Some(GUARD_BYTES - 16));
            ranges.push((at, GUARD_BYTES - 16));
        }
        let submission = self.device.submit(encoder);
        let behind = Read::start(&pool, target, submission, ranges).wait().await?;
        Ok(behind.0.iter().flatten().any(|&word| word != poison))
    }

    pub(super) async fn run(
        &mut self,
        states: &mut States,
        input: &StepInput,
        watch: Watch<'_>,
    ) -> Result<Read, Error> {
        let submits = if self.device.is_idle() { Submits::Early } else { Submits::Whole };
        let encoder = self.encode(states, input, submits, watch, &mut ()).await?;
        self.finish(encoder, input.counts()).await
    }

    /// Encodes every dispatch of this step and submits all passes except the last. At each cut it
    /// waits for the pass before the one just submitted, so that at most two passes are queued and
    /// a cancel takes effect soon.
    pub(crate) async fn encode(
        &mut self,
        states: &States,
        input: &StepInput,
        submits: Submits,
        watch: Watch<'_>,
        marks: &mut dyn Marks,
    ) -> Result<wgpu::CommandEncoder, Error> {
        #[cfg(feature = "testing")]
        self.device.lose_if_asked();
        self.device.check("starting a step")?;
        self.prepare(states, input).await?;
        let (counts, slot) = (input.counts(), self.inputs.slot());
        let groups = &self.bound.as_ref().expect("prepared").groups;
        watch.at(Far::over(self.planned.dispatches.iter().map(|placed| placed.stage)).now())?;
        let device = &self.device.0;
        let mut encoder = device.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut queued = None;
        for (steps, end) in self.passes.submitted(submits) {
            let run: Vec<usize> = steps.clone().filter(|&at| self.runs(at, input)).collect();
            for part in run.chunks(marks.most_per_pass()) {
                let timestamp_writes = marks.pass(part[part.len() - 1]);
                let mut pass =
                    encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
                marks.mark(&mut pass, None);
                for &at in part {
                    let [x, y, z] = self.planned.dispatches[at].dispatch.grid.at(counts, self.planned.max_grid);
                    pass.set_pipeline(&self.pipelines[at].pipeline);
                    pass.set_bind_group(0, &groups[at][slot % groups[at].len()], &[]);
                    pass.dispatch_workgroups(x, y, z);
                    marks.mark(&mut pass, Some(at));
                }
            }
            match end {
                End::Last => break,
                End::Early => drop(self.device.submit(encoder)),
                End::Cut(progress) => {
                    if let Some(before) = queued.replace(self.device.submit(encoder)) {
                        self.device.done(before, "a step").await?;
                    }
                    watch.at(*progress)?;
                }
            }
            encoder = device.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        }
        Ok(encoder)
    }

    /// The last dispatch of every pass of a step that is submitted whole.
    pub(crate) fn pass_ends(&self, input: &StepInput) -> Vec<usize> {
        let runs = |&at: &usize| self.runs(at, input);
        self.passes.submitted(Submits::Whole).iter().filter_map(|(steps, _)| steps.clone().rev().find(runs)).collect()
    }

    /// Whether the step has this dispatch.
    fn runs(&self, at: usize, input: &StepInput) -> bool {
        self.planned.dispatches[at].dispatch.when.holds(input)
    }

    /// Encodes the copies for the read-back, submits, and starts the mapping.
    pub(crate) async fn finish(&self, encoder: wgpu::CommandEncoder, counts: Counts) -> Result<Read, Error> {
        self.read(&self.pool, encoder, &self.planned.read_back, counts).await
    }

    /// Encodes the copies of these values for the read-back, submits, and starts the mapping.
    async fn read(
        &self,
        pool: &Arc<Pool>,
        mut encoder: wgpu::CommandEncoder,
        values: &[Tensor],
        counts: Counts,
    ) -> Result<Read, Error> {
        let target = pool.take().await?;
        let mut ranges = vec![];
        self.copy(&mut encoder, &target, values, counts, &mut ranges);
        let submission = self.device.submit(encoder);
        Ok(Read::start(pool, target, submission, ranges))
    }

    /// Encodes copies of these values to `target`, behind the ranges that it has, and adds theirs.
    fn copy(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        target: &wgpu::Buffer,
        values: &[Tensor],
        counts: Counts,
        ranges: &mut Vec<(u64, u64)>,
    ) {
        let mut offset = ranges.last().map_or(0, |(at, bytes)| at + bytes);
        for t in values {
            let bytes = 4 * u64::from(t.shape.rows_at(counts)) * u64::from(t.shape.width());
            if bytes > 0 {
                let source = &self.buffers[self.planned.placement.slots[&t.id]];
                encoder.copy_buffer_to_buffer(source, t.offset_bytes(), target, offset, Some(bytes));
            }
            ranges.push((offset, bytes));
            offset += bytes;
        }
    }

    /// Runs these dispatches alone. Returns the words that the first values have before and the
    /// other values have after. The step must be prepared.
    pub(super) async fn run_steps(
        &self,
        steps: &[usize],
        input: &StepInput,
        before: &[Tensor],
        after: &[Tensor],
    ) -> Result<[Vec<Vec<u32>>; 2], Error> {
        let (counts, slot) = (input.counts(), self.inputs.slot());
        let bytes = before.iter().chain(after).map(|t| 4 * t.shape.elements()).sum::<u64>();
        let read =
            if before.is_empty() && after.is_empty() { None } else { Some(Pool::new(&self.device, bytes.max(4))) };
        let target = match &read {
            Some(pool) => Some(pool.take().await?),
            None => None,
        };
        let groups = &self.bound.as_ref().expect("prepared").groups;
        let mut ranges = vec![];
        let mut encoder = self.device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        if let Some(target) = &target {
            self.copy(&mut encoder, target, before, counts, &mut ranges);
        }
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for &at in steps {
            let [x, y, z] = self.planned.dispatches[at].dispatch.grid.at(counts, self.planned.max_grid);
            pass.set_pipeline(&self.pipelines[at].pipeline);
            pass.set_bind_group(0, &groups[at][slot % groups[at].len()], &[]);
            pass.dispatch_workgroups(x, y, z);
        }
        drop(pass);
        if let Some(target) = &target {
            self.copy(&mut encoder, target, after, counts, &mut ranges);
        }
        let submission = self.device.submit(encoder);
        let (Some(pool), Some(target)) = (read, target) else { return Ok([vec![], vec![]]) };
        let mut words = Read::start(&pool, target, submission, ranges).wait().await?.0;
        let of_after = words.split_off(before.len());
        Ok([words, of_after])
    }

    /// Writes the step's inputs, and makes new bind groups if the buffers of the states changed.
    pub(super) async fn prepare(&mut self, states: &States, input: &StepInput) -> Result<(), Error> {
        if self.bound.as_ref().is_none_or(|b| b.generation != states.generation) {
            self.bound = Some(self.bind(states).await?);
        }
        let sources = Sources { placement: &self.planned.placement, origins: &self.origins, ropes: &self.ropes };
        self.inputs.prepare(&self.device, input, &sources);
        Ok(())
    }

    async fn bind(&self, states: &States) -> Result<Bound, Error> {
        let Store::Gpu(_, state_buffers) = &states.store else {
            unreachable!("a GPU plan over states of the CPU executor")
        };
        assert!(
            self.states.iter().zip(0..).all(|(k, n)| states.kind(crate::graph::tensor::State(n)) == *k),
            "states of another recording"
        );
        assert!([0, states.sequences()].contains(&self.planned.sequences), "states of another number of sequences");
        let device = &self.device.0;
        let align = device.caps.uniform_align.max(16) as usize;
        let (mut params, mut offsets) = (Vec::<u8>::new(), vec![]);
        for placed in &self.planned.dispatches {
            params.resize(params.len().next_multiple_of(align), 0);
            offsets.push(params.len() as u64);
            let start = params.len();
            params.extend_from_slice(&placed.dispatch.params);
            if let Some((_, at)) = placed.dispatch.variant.kernel.bound_late() {
                // Without a state among the arguments, the lowering has already set this parameter.
                let bound = placed
                    .dispatch
                    .args
                    .iter()
                    .find_map(|arg| if let Arg::State(s) = arg { Some(states.rows(*s)) } else { None });
                bound
                    .into_iter()
                    .for_each(|rows| params[start + at..start + at + 4].copy_from_slice(&rows.to_le_bytes()));
            }
        }
        params.resize(params.len().next_multiple_of(16), 0);
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let uniform = self.device.buffer("the parameters", params.len() as u64, usage).await?;
        device.queue.write_buffer(&uniform, 0, &params);
        let groups =
            self.planned.dispatches.iter().zip(&self.pipelines).zip(offsets).map(|((placed, pipeline), offset)| {
                let size = std::num::NonZeroU64::new(placed.dispatch.params.len() as u64);
                let bound = wgpu::BufferBinding { buffer: &uniform, offset, size };
                let reads =
                    placed.dispatch.args.iter().any(|arg| matches!(arg, Arg::Value(t) if self.input(t.id).is_some()));
                let group = |slot| {
                    let mut entries = vec![wgpu::BindGroupEntry {
                        binding: 0,
                        resource: wgpu::BindingResource::Buffer(bound.clone()),
                    }];
                    for (n, arg) in placed.dispatch.args.iter().enumerate() {
                        entries.push(wgpu::BindGroupEntry {
                            binding: n as u32 + 1,
                            resource: self.resource(arg, slot, state_buffers),
                        });
                    }
                    self.device.bind_group(placed.dispatch.variant.name, &pipeline.layout, &entries)
                };
                (0..if reads { self.inputs.slots() } else { 1 }).map(group).collect()
            });
        let groups = groups.collect();
        self.device.check("binding a plan")?;
        Ok(Bound { generation: states.generation, groups, _params: uniform })
    }

    /// Offset and size in bytes of an input, if this value is one.
    fn input(&self, id: u32) -> Option<(u64, u64)> {
        self.planned.placement.inputs.iter().find(|i| i.0 == id).map(|i| (i.2, i.3))
    }

    fn resource<'a>(&'a self, arg: &Arg, slot: usize, states: &'a [Buffer]) -> wgpu::BindingResource<'a> {
        match arg {
            Arg::None => self.dummy.as_entire_binding(),
            Arg::Spare => self.spare.as_entire_binding(),
            Arg::Weight(w, part) => match w.place {
                Place::Loaded(n) => self.weights.buffer(n, *part).as_entire_binding(),
                Place::State(s) => states[s.0 as usize].as_entire_binding(),
            },
            Arg::State(s) => states[s.0 as usize].as_entire_binding(),
            Arg::Value(t) => match self.planned.placement.slots.get(&t.id) {
                Some(&at) if t.first == 0 => self.buffers[at].as_entire_binding(),
                Some(&at) => {
                    let size = std::num::NonZeroU64::new(4 * t.shape.elements());
                    wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &self.buffers[at],
                        offset: t.offset_bytes(),
                        size,
                    })
                }
                None => {
                    let (offset, bytes) =
                        self.input(t.id).unwrap_or_else(|| panic!("value {} is read before it is made", t.id));
                    let bytes = if t.first == 0 { bytes } else { 4 * t.shape.elements() };
                    wgpu::BindingResource::Buffer(self.inputs.binding(slot, offset + t.offset_bytes(), bytes))
                }
            },
        }
    }
}

impl Device {
    /// Submits these commands, then starts to read `pool.bytes` bytes of a buffer.
    pub(crate) async fn read(
        &self,
        pool: &Arc<Pool>,
        mut encoder: wgpu::CommandEncoder,
        source: &wgpu::Buffer,
    ) -> Result<Pending, Error> {
        let target = pool.take().await?;
        encoder.copy_buffer_to_buffer(source, 0, &target, 0, Some(pool.bytes));
        let submission = self.submit(encoder);
        Ok(Pending::gpu(Read::start(pool, target, submission, vec![(0, pool.bytes)])))
    }
}
