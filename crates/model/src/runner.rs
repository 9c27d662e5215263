//! Runs steps of one model over one group of sequences: plans made once, states that grow.

use crate::adapter::{Adapted, Applied};
use crate::arch::{self, Architecture, Logits};
use crate::chunk;
use crate::error::Error;
use crate::model::{Model, record};
use crate::needs::{self, Needs};
use crate::sequence::Sequence;
use crate::session::{PrefillProgress, SessionOptions};
use kernels::ops::{penalize, sample};
use kernels::{Counts, Executor, Outputs, Pending, Plan, Recorder, SampleParams, StateKind, States, StepInput, Watch};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a step ends with.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Head {
    /// The logits of every row.
    Logits,
    /// An id and its log-probability per asked row; the id goes to the token state too.
    Sample { penalize: bool },
}

/// Plans differ in capacity and head.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlanKey {
    pub rows: u32,
    pub out: u32,
    pub head: Head,
}

/// The positions of one sequence, from the first that is not evaluated up to `until`, that a step evaluates.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Span {
    pub slot: usize,
    pub until: usize,
}

pub(crate) struct Runner {
    pub model: Model,
    pub states: States,
    kinds: Vec<StateKind>,
    plans: HashMap<PlanKey, Plan>,
    options: SessionOptions,
    context: u32,
    adapters: Vec<Applied>,
    adapted: Adapted,
}

/// Positions that states are first made for; they double from there.
const FIRST_POSITIONS: u32 = 1024;

/// Steps in flight on a GPU: enough to hide a read-back, few enough that a late stop wastes little.
const GPU_DEPTH: usize = 4;

/// Keys that a ring's length is a multiple of: the tile of the attention kernel.
const RING_TILE: u32 = 128;

/// Positions that the ring of a window holds: what the last row of the largest step sees, and steps that ran ahead of what was
/// read, in whole tiles. The rest is slack for rollbacks.
pub(crate) fn ring_rows(window: u32, options: &SessionOptions) -> u32 {
    let ahead = capacities(options)[2].saturating_add(GPU_DEPTH as u32);
    window.saturating_add(ahead).checked_next_multiple_of(RING_TILE).unwrap_or(u32::MAX)
}

/// Rows that the plans of steps which draw have room for: one, one for each sequence, a chunk.
fn capacities(options: &SessionOptions) -> [u32; 3] {
    [1, options.sequences, options.sequences.max(options.chunk)]
}

/// The plans that a session which generates makes.
pub(crate) fn sampling_keys(options: &SessionOptions) -> Vec<PlanKey> {
    let mut rows = capacities(options).to_vec();
    rows.dedup();
    rows.into_iter().map(|rows| PlanKey { rows, out: options.sequences.min(rows), head: Head::Sample { penalize: true } }).collect()
}

/// Records the step that a key names.
pub(crate) fn recording(architecture: &dyn Architecture, adapted: &Adapted, kinds: &[StateKind], key: PlanKey) -> Recorder {
    let capacity = Counts { step: key.rows, out: key.out };
    match key.head {
        Head::Logits => record(architecture, adapted, Recorder::new(capacity, kinds), Logits::All, false).0,
        Head::Sample { penalize: penalized } => {
            let (mut rec, raw) = record(architecture, adapted, Recorder::new(capacity, kinds), Logits::Rows, true);
            let tokens = rec.state(0);
            let logits = if penalized { penalize(&mut rec, raw, tokens) } else { raw };
            let drawn = sample(&mut rec, logits, raw, tokens);
            rec.output(drawn);
            rec
        }
    }
}

/// What a step drew: (id, log-probability) per asked row.
pub(crate) fn drawn(outputs: &Outputs) -> impl Iterator<Item = (u32, f32)> {
    outputs.0[0].chunks_exact(2).map(|row| (row[0], f32::from_bits(row[1])))
}

/// Refuses what memory does not hold: as much as the options say, or what is free now and the `held` bytes that are there already.
fn fit(model: &Model, adapted: &Adapted, options: &SessionOptions, held: u64) -> Result<(), Error> {
    let executor = model.executor();
    let free = || Some(needs::available(executor)?.saturating_add(held));
    let Some(available) = options.memory_bytes.or_else(free) else { return Ok(()) };
    let context = options.context_for(model.summary())?;
    Needs::of(model.architecture(), adapted, executor, options)?.fit(executor, context, available)
}

impl Runner {
    pub fn new(model: Model, options: &SessionOptions) -> Result<Self, Error> {
        assert!(options.sequences > 0, "a session of no sequences");
        let context = options.context_for(model.summary())?;
        let adapted = Adapted::none(model.weights());
        let options = &chunk::settled(model.architecture(), &adapted, model.executor(), options, adapted.weights.bytes())?;
        fit(&model, &adapted, options, adapted.weights.bytes())?;
        let executor = model.executor();
        let kinds = arch::states(model.summary(), options);
        let states = States::new(executor, &kinds, options.sequences, FIRST_POSITIONS.min(context))?;
        Ok(Self { model, states, kinds, plans: HashMap::new(), options: options.clone(), context, adapters: vec![], adapted })
    }

    pub fn adapters(&self) -> &[Applied] {
        &self.adapters
    }

    /// Puts these adapters in force and tells whether that changes anything: then whatever the states hold was made with others.
    pub fn set_adapters(&mut self, adapters: Vec<Applied>) -> Result<bool, Error> {
        if adapters == self.adapters {
            return Ok(false);
        }
        let adapted = Adapted::with(self.model.weights(), &adapters)?;
        fit(&self.model, &adapted, &self.options, adapted.weights.bytes().saturating_add(self.states.bytes()))?;
        // Scales are constants of the plans. Their kernels are built already, and all tokens are to be read again anyway.
        self.plans.clear();
        (self.adapters, self.adapted) = (adapters, adapted);
        Ok(true)
    }

    /// Another over the same model and adapters, whose states hold the same at the first `positions` positions.
    pub fn fork(&self, positions: usize) -> Result<Self, Error> {
        let (model, options, context) = (self.model.clone(), self.options.clone(), self.context);
        let adapted = Adapted::with(model.weights(), &self.adapters)?;
        fit(&model, &adapted, &options, adapted.weights.bytes())?;
        let states = self.states.fork(positions as u32)?;
        let (kinds, adapters) = (self.kinds.clone(), self.adapters.clone());
        Ok(Self { model, states, kinds, plans: HashMap::new(), options, context, adapters, adapted })
    }

    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// A sequence that holds nothing yet.
    pub fn sequence(&self) -> Sequence {
        let windows = self.model.summary().caches.iter().flat_map(|cache| [cache.window; 2]);
        Sequence::new(self.kinds.iter().skip(1).copied().zip(windows))
    }

    /// Positions per sequence at most.
    pub fn context(&self) -> usize {
        self.context as usize
    }

    /// Rows of a step at most.
    pub fn most_rows(&self) -> usize {
        capacities(&self.options)[2] as usize
    }

    /// Steps that may be in flight.
    pub fn depth(&self) -> usize {
        if matches!(self.model.executor(), Executor::Gpu(_)) { GPU_DEPTH } else { 1 }
    }

    /// Makes room for `positions` positions per sequence.
    pub fn reserve(&mut self, positions: usize) -> Result<(), Error> {
        if positions > self.context() {
            return Err(Error::ContextOverflow { needed: positions, limit: self.context() });
        }
        let (needed, current) = (positions as u32, self.states.capacity());
        if needed > current {
            self.states.grow(needed.max(current.saturating_mul(2)).min(self.context))?;
        }
        Ok(())
    }

    /// The largest step whose logits, of all rows, one binding holds and 64 MB suffice for.
    pub fn rows_with_logits(&self) -> u32 {
        let row = 4 * u64::from(self.model.summary().vocabulary);
        let limit = match self.model.executor() {
            Executor::Gpu(device) => device.caps().max_binding_bytes.min(64 << 20),
            Executor::Cpu => 64 << 20,
        };
        ((limit / row) as u32).clamp(1, self.options.chunk)
    }

    /// The plan for steps of this many rows: the smallest of the few that are made.
    pub fn key(&self, rows: usize, head: Head) -> PlanKey {
        let fitting = |capacities: &[u32]| capacities.iter().copied().find(|&c| c as usize >= rows).unwrap_or(rows as u32);
        match head {
            Head::Logits => {
                let rows = fitting(&[1, self.rows_with_logits()]);
                PlanKey { rows, out: rows, head }
            }
            Head::Sample { .. } => {
                let rows = fitting(&capacities(&self.options));
                PlanKey { rows, out: self.options.sequences.min(rows), head }
            }
        }
    }

    fn plan(&mut self, key: PlanKey) -> Result<(&mut Plan, &mut States), Error> {
        if !self.plans.contains_key(&key) {
            let rec = recording(self.model.architecture(), &self.adapted, &self.kinds, key);
            let plan = self.model.executor().plan(rec, &self.adapted.weights, &self.options.planning())?;
            self.plans.insert(key, plan);
        }
        Ok((self.plans.get_mut(&key).expect("just made"), &mut self.states))
    }

    /// Makes room for a step over these spans, writes the ids that the host knows, and gives the step's inputs.
    fn input(&mut self, sequences: &mut [Sequence], spans: &[Span], draws: &[SampleParams]) -> Result<StepInput, Error> {
        let end = spans.iter().map(|span| span.until).max().unwrap_or(0);
        self.reserve((end + 1).min(self.context()))?;
        let tokens = self.states.state(0);
        let mut input = StepInput { sampling: draws.to_vec(), ..StepInput::default() };
        for &Span { slot, until } in spans {
            sequences[slot].write(until);
            let Sequence { tokens: ids, evaluated, .. } = &sequences[slot];
            // Ids past the known ones were drawn by a step still in flight and are on the device already.
            let known = *evaluated.min(&ids.len())..until.min(ids.len());
            if !known.is_empty() {
                self.states.write_tokens(tokens, slot as u32, known.start as u32, &ids[known]);
            }
            input.positions.extend(*evaluated as u32..until as u32);
            input.sequences.resize(input.positions.len(), slot as u32);
            if !draws.is_empty() {
                input.out_rows.push(input.positions.len() as u32 - 1);
            }
        }
        Ok(input)
    }

    /// Starts a step over these spans. The last row of the n-th is drawn from by the n-th of `draws`, if there are any.
    pub fn start(
        &mut self,
        sequences: &mut [Sequence],
        spans: &[Span],
        head: Head,
        draws: &[SampleParams],
        cancel: &AtomicBool,
    ) -> Result<Pending, Error> {
        let input = self.input(sequences, spans, draws)?;
        let (plan, states) = self.plan(self.key(input.positions.len(), head))?;
        let pending = plan.run(states, &input, Watch { cancel: Some(cancel), progress: None })?;
        spans.iter().for_each(|span| sequences[span.slot].evaluated = span.until);
        Ok(pending)
    }

    /// Runs a step over these spans, which draw as in [`Runner::start`], with a timestamp after every dispatch; what it draws is forgotten.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn profile(
        &mut self,
        sequences: &mut [Sequence],
        spans: &[Span],
        draws: &[SampleParams],
    ) -> Result<kernels::exec::profile::Profile, Error> {
        let input = self.input(sequences, spans, draws)?;
        let penalize = draws.iter().any(SampleParams::penalizes);
        let (plan, states) = self.plan(self.key(input.positions.len(), Head::Sample { penalize }))?;
        Ok(plan.profile(states, &input)?)
    }

    /// Evaluates every sequence up to its end in whole chunks, filled from the first on, until `keep` positions or fewer are left.
    pub fn prefill(
        &mut self,
        sequences: &mut [Sequence],
        ends: &[usize],
        keep: usize,
        head: Head,
        cancel: &AtomicBool,
        progress: Option<PrefillProgress<'_>>,
    ) -> Result<(), Error> {
        let left = |all: &[Sequence]| all.iter().zip(ends).map(|(s, &end)| end.saturating_sub(s.evaluated)).sum::<usize>();
        let (total, mut done) = (left(sequences), 0);
        let mut finish = |(pending, rows): (Pending, usize)| {
            pending.wait()?;
            done += rows;
            if let Some(report) = progress {
                report(done, total);
            }
            Ok::<_, Error>(())
        };
        // On a GPU one chunk runs while the inputs of the next are made.
        let ahead = self.depth() > 1;
        let mut running: Option<(Pending, usize)> = None;
        while left(sequences) > keep {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let (mut spans, mut room) = (vec![], self.options.chunk as usize);
            for (slot, (sequence, &end)) in sequences.iter().zip(ends).enumerate() {
                let rows = end.saturating_sub(sequence.evaluated).min(room);
                if rows > 0 {
                    spans.push(Span { slot, until: sequence.evaluated + rows });
                    room -= rows;
                }
            }
            let rows = self.options.chunk as usize - room;
            let started = self.start(sequences, &spans, head, &[], cancel)?;
            if let Some(before) = running.replace((started, rows)) {
                finish(before)?;
            }
            if !ahead && let Some(now) = running.take() {
                finish(now)?;
            }
        }
        running.map_or(Ok(()), finish)
    }

    /// The names and layers of what a plan reads back after its outputs.
    pub fn taps(&self, key: PlanKey) -> Vec<(String, u32)> {
        let rec = recording(self.model.architecture(), &self.adapted, &self.kinds, key);
        kernels::plan::requested(&rec, &self.options.plan).iter().map(|t| (t.name.to_string(), t.layer)).collect()
    }
}
