//! Runs the steps of one model over a group of sequences. It makes each plan once and grows the
//! states.

use crate::adapter::{Adapted, Applied};
use crate::arch;
use crate::chunk::{self, Division};
use crate::error::Error;
use crate::memory::available;
use crate::model::Model;
use crate::needs::Needs;
use crate::options::{GPU_DEPTH, SessionOptions};
use crate::plans::{capacities, key, rows_with_logits};
use crate::recording::{Head, PlanKey, recording};
use crate::sampling::Sampling;
use crate::sequence::Sequence;
use gguf::Report;
use kernels::{
    Agreement, Executor, Mirror, NotFinite, Pending, Plan, Progress, Room, SampleParams, StateKind, States, StepInput,
    Tap, Watch,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

/// The positions of one sequence that a step evaluates: from the first position that is not
/// evaluated up to `until`, exclusive.
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
    /// The intermediates of all plans, whose steps run one after another.
    room: Room,
    /// Rows of the plans that draw, rising.
    capacities: Vec<u32>,
    options: SessionOptions,
    division: Division,
    context: u32,
    adapters: Vec<Applied>,
    adapted: Adapted,
    /// Steps in flight whose results are not awaited. The next step waits for them, so that their
    /// buffers are used again.
    abandoned: Vec<Pending>,
    /// The plan of the last step.
    last: Option<PlanKey>,
}

/// A prefill whose last step may still run.
#[must_use]
pub(crate) struct Prefill<'p> {
    /// The step that runs, and its rows.
    running: Option<(Pending, usize)>,
    /// Tokens evaluated so far, and in total.
    done: usize,
    total: usize,
    progress: Option<Report<'p>>,
}

impl Prefill<'_> {
    /// Waits for the step that runs, if there is one, and reports it.
    pub async fn finish(&mut self) -> Result<(), Error> {
        if let Some((pending, rows)) = self.running.take() {
            pending.wait_async().await?;
            self.done += rows;
            if let Some(report) = self.progress {
                report(Progress { done: self.done as u64, total: self.total as u64 });
            }
        }
        Ok(())
    }
}

/// Positions that the states have room for at first. The room doubles from there.
const FIRST_POSITIONS: u32 = 1024;

/// Returns an error if the needs exceed the memory that the options allow. If they name no limit,
/// the limit is the free memory plus `held`, the bytes that this model has allocated already.
fn fit(model: &Model, adapted: &Adapted, options: &SessionOptions, held: u64) -> Result<(), Error> {
    let executor = model.executor();
    let free = || Some(available(executor)?.saturating_add(held));
    let Some(available) = options.memory_bytes.or_else(free) else { return Ok(()) };
    let context = options.context_for(model.summary())?;
    Needs::of(model.architecture(), adapted, executor, options)?.fit(executor, context, available)
}

/// An error if one of these taps is not of the model.
fn check_taps(model: &Model, asked: &[String]) -> Result<(), Error> {
    let known = if asked.is_empty() { vec![] } else { model.taps() };
    match asked.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(Error::Tap { name: name.clone(), known }),
        None => Ok(()),
    }
}

impl Model {
    /// The names of the values that the taps of a session read back, in the order of the alphabet.
    #[must_use]
    pub fn taps(&self) -> Vec<&'static str> {
        let kinds = arch::states(self.summary(), &SessionOptions::default());
        let key = PlanKey { rows: 1, out: 1, head: Head::Logits };
        let rec = recording(self.architecture(), &Adapted::none(self.weights()), &kinds, key);
        let names: BTreeSet<&str> = rec.taps().iter().map(|tap| tap.name).collect();
        names.into_iter().collect()
    }
}

impl Runner {
    pub async fn new(model: Model, options: &SessionOptions) -> Result<Self, Error> {
        assert!(options.sequences > 0, "a session of no sequences");
        let context = options.context_for(model.summary())?;
        check_taps(&model, &options.plan.taps)?;
        let adapted = Adapted::none(model.weights());
        let options =
            &chunk::settled(model.architecture(), &adapted, model.executor(), options, adapted.weights.bytes())?;
        fit(&model, &adapted, options, adapted.weights.bytes())?;
        let executor = model.executor();
        let kinds = arch::states(model.summary(), options);
        let states = States::new_async(executor, &kinds, options.sequences, FIRST_POSITIONS.min(context)).await?;
        let (plans, room, capacities) = (HashMap::new(), Room::default(), capacities(executor, options));
        let division = Division::of(model.architecture(), &adapted, executor, options);
        let (options, adapters, abandoned, last) = (options.clone(), vec![], vec![], None);
        Ok(Self {
            model,
            states,
            kinds,
            plans,
            room,
            capacities,
            options,
            division,
            context,
            adapters,
            adapted,
            abandoned,
            last,
        })
    }

    pub fn adapters(&self) -> &[Applied] {
        &self.adapters
    }

    /// Puts these adapters in force and returns whether they differ from the adapters before. If
    /// they differ, the keys and values in the states are no longer valid.
    pub fn set_adapters(&mut self, adapters: Vec<Applied>) -> Result<bool, Error> {
        if adapters == self.adapters {
            return Ok(false);
        }
        let adapted = Adapted::with(self.model.weights(), &adapters)?;
        fit(&self.model, &adapted, &self.options, adapted.weights.bytes().saturating_add(self.states.bytes()))?;
        // The scales are constants of the plans, so the plans are made again. This costs little:
        // their kernels are built already, and all tokens have to be evaluated again anyway.
        self.plans.clear();
        (self.adapters, self.adapted) = (adapters, adapted);
        Ok(true)
    }

    /// A second runner with the same model and adapters, and with a copy of the first `positions`
    /// positions of the states.
    pub async fn fork(&self, positions: usize) -> Result<Self, Error> {
        let (model, options, context) = (self.model.clone(), self.options.clone(), self.context);
        let adapted = Adapted::with(model.weights(), &self.adapters)?;
        fit(&model, &adapted, &options, adapted.weights.bytes())?;
        let states = self.states.fork_async(positions as u32).await?;
        let (kinds, capacities, adapters) = (self.kinds.clone(), self.capacities.clone(), self.adapters.clone());
        let (plans, room, division, abandoned, last) = (HashMap::new(), Room::default(), self.division, vec![], None);
        Ok(Self {
            model,
            states,
            kinds,
            plans,
            room,
            capacities,
            options,
            division,
            context,
            adapters,
            adapted,
            abandoned,
            last,
        })
    }

    /// A runner with the same options for other weights of the same file, and with these adapters.
    /// Its states are empty.
    pub async fn moved(&self, model: &Model, adapters: Vec<Applied>) -> Result<Self, Error> {
        if model.digest()? != self.model.digest()? {
            return Err(Error::OtherModel);
        }
        let mut moved = Self::new(model.clone(), &self.options).await?;
        moved.set_adapters(adapters)?;
        Ok(moved)
    }

    /// The plan of the last step.
    pub fn last_plan(&self) -> Option<&Plan> {
        self.plans.get(self.last.as_ref()?)
    }

    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Makes an empty sequence.
    pub fn sequence(&self) -> Sequence {
        let windows = self.model.summary().caches.iter().flat_map(|cache| [cache.window; 2]);
        Sequence::new(self.kinds.iter().skip(1).copied().zip(windows))
    }

    /// Context length of each sequence, in tokens.
    pub fn context(&self) -> usize {
        self.context as usize
    }

    /// Largest number of rows of a step.
    pub fn most_rows(&self) -> usize {
        self.options.most_rows() as usize
    }

    /// Steps that may be in flight.
    pub fn depth(&self) -> usize {
        if matches!(self.model.executor(), Executor::Gpu(_)) { GPU_DEPTH } else { 1 }
    }

    /// Makes room for `positions` positions per sequence.
    pub async fn reserve(&mut self, positions: usize) -> Result<(), Error> {
        if positions > self.context() {
            return Err(Error::ContextOverflow { needed: positions, limit: self.context() });
        }
        let (needed, current) = (positions as u32, self.states.capacity());
        if needed > current {
            self.states.grow_async(needed.max(current.saturating_mul(2)).min(self.context)).await?;
        }
        Ok(())
    }

    pub fn rows_with_logits(&self) -> u32 {
        rows_with_logits(self.model.summary().vocabulary, self.model.executor(), &self.options)
    }

    pub fn key(&self, rows: usize, head: Head) -> PlanKey {
        key(self.rows_with_logits(), &self.options, &self.capacities, rows, head)
    }

    async fn plan(&mut self, key: PlanKey) -> Result<(&mut Plan, &mut States), Error> {
        if !self.plans.contains_key(&key) {
            // A plan of more rows needs a larger room. The plans before it are made again, in that
            // room, so that the memory of theirs is freed.
            if self.plans.keys().all(|before| before.rows < key.rows) {
                self.plans.clear();
                self.room = Room::default();
            }
            let rec = recording(self.model.architecture(), &self.adapted, &self.kinds, key);
            let plan = self
                .model
                .executor()
                .plan_in_async(rec, &self.adapted.weights, &self.options.planning(), &mut self.room)
                .await?;
            self.plans.insert(key, plan);
        }
        self.last = Some(key);
        Ok((self.plans.get_mut(&key).expect("just made"), &mut self.states))
    }

    /// Makes room for a step over these spans, writes the ids that the host knows to the device,
    /// and returns the inputs of the step.
    async fn input(
        &mut self,
        sequences: &mut [Sequence],
        spans: &[Span],
        draws: &[SampleParams],
    ) -> Result<StepInput, Error> {
        let end = spans.iter().map(|span| span.until).max().unwrap_or(0);
        self.reserve((end + 1).min(self.context())).await?;
        let tokens = self.states.state(0);
        let mut input = StepInput { sampling: draws.to_vec(), ..StepInput::default() };
        for &Span { slot, until } in spans {
            sequences[slot].write(until);
            let Sequence { tokens: ids, evaluated, .. } = &sequences[slot];
            // The ids behind the known ids are drawn by steps in flight, which write them on the
            // device.
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

    /// Starts a step over these spans. If `draws` is not empty, the step draws an id from the last
    /// row of each span; the n-th of `draws` is for the n-th span.
    pub async fn start(
        &mut self,
        sequences: &mut [Sequence],
        spans: &[Span],
        head: Head,
        draws: &[SampleParams],
        cancel: &AtomicBool,
    ) -> Result<Pending, Error> {
        self.settle().await;
        let input = self.input(sequences, spans, draws).await?;
        let (plan, states) = self.plan(self.key(input.positions.len(), head)).await?;
        let pending = plan.run_async(states, &input, Watch { cancel: Some(cancel), progress: None }).await?;
        spans.iter().for_each(|span| sequences[span.slot].evaluated = span.until);
        Ok(pending)
    }

    /// Runs a step over these spans, with draws as in [`Runner::start`] and a timestamp after every
    /// dispatch. The drawn ids are dropped.
    pub async fn profile(
        &mut self,
        sequences: &mut [Sequence],
        spans: &[Span],
        draws: &[SampleParams],
    ) -> Result<kernels::Profile, Error> {
        self.settle().await;
        let input = self.input(sequences, spans, draws).await?;
        let penalize = draws.iter().any(SampleParams::penalizes);
        let (plan, states) = self.plan(self.key(input.positions.len(), Head::Sample { penalize })).await?;
        Ok(plan.profile_async(states, &input).await?)
    }

    /// Runs a step over these spans as [`Runner::start`] does, one operation at a time on the
    /// device and on the host.
    pub async fn agree(
        &mut self,
        mirror: &mut Mirror,
        sequences: &mut [Sequence],
        spans: &[Span],
        draws: &[SampleParams],
        watch: Watch<'_>,
    ) -> Result<Vec<Agreement>, Error> {
        self.settle().await;
        let input = self.input(sequences, spans, draws).await?;
        let agreements = self.agree_in(mirror, &input, Head::Sample { penalize: false }, watch).await?;
        spans.iter().for_each(|span| sequences[span.slot].evaluated = span.until);
        Ok(agreements)
    }

    /// Runs a step on these inputs, one operation at a time on the device and on the host. The ids
    /// of the inputs are in the token state.
    pub async fn agree_in(
        &mut self,
        mirror: &mut Mirror,
        input: &StepInput,
        head: Head,
        watch: Watch<'_>,
    ) -> Result<Vec<Agreement>, Error> {
        self.settle().await;
        let (plan, states) = self.plan(self.key(input.positions.len(), head)).await?;
        Ok(plan.agree_async(mirror, states, input, watch).await?.1)
    }

    /// The error of a sequence whose logits at `position` are not finite. The positions up to there
    /// are evaluated again, one operation at a time, to find the operation where it begins.
    pub async fn not_finite(&mut self, sequences: &mut [Sequence], slot: usize, position: usize) -> Error {
        let before = sequences[slot].clone();
        // Without a cause the error is still the right one.
        let cause = self.cause(sequences, slot, position).await.ok().flatten().map(Box::new);
        // The states hold what they held, up to this position.
        sequences[slot] = Sequence { evaluated: before.evaluated.min(position + 1), ..before };
        Error::NonFinite { sequence: slot as u32, position, cause }
    }

    async fn cause(
        &mut self,
        sequences: &mut [Sequence],
        slot: usize,
        position: usize,
    ) -> Result<Option<NotFinite>, Error> {
        self.settle().await;
        sequences[slot].stale();
        while sequences[slot].evaluated <= position {
            let until = (sequences[slot].evaluated + self.most_rows()).min(position + 1);
            let draws = [Sampling::greedy().params(slot as u32)];
            let draws = if until > position { &draws[..] } else { &[] };
            let input = self.input(sequences, &[Span { slot, until }], draws).await?;
            let (plan, states) = self.plan(self.key(input.positions.len(), Head::Sample { penalize: false })).await?;
            let found = plan.first_not_finite_async(states, &input).await?;
            if found.is_some() {
                return Ok(found);
            }
            sequences[slot].evaluated = until;
        }
        Ok(None)
    }

    /// Evaluates the sequences up to their `ends`. A step takes rows of the first sequence first,
    /// then of the next. If `behind` is not 0, it is the number of rows that the caller's step has
    /// behind the ends, and the last rows before the ends are left to that step. The last step may
    /// still run: the caller starts its own step, then waits for both.
    pub async fn prefill<'p>(
        &mut self,
        sequences: &mut [Sequence],
        ends: &[usize],
        behind: usize,
        head: Head,
        cancel: &AtomicBool,
        progress: Option<Report<'p>>,
    ) -> Result<Prefill<'p>, Error> {
        let left =
            |all: &[Sequence]| all.iter().zip(ends).map(|(s, &end)| end.saturating_sub(s.evaluated)).sum::<usize>();
        let mut prefill = Prefill { running: None, done: 0, total: left(sequences), progress };
        loop {
            let rows = self.division.next(left(sequences) + behind);
            if left(sequences) == 0 || (behind > 0 && rows == left(sequences) + behind) {
                return Ok(prefill);
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let (mut spans, mut room) = (vec![], rows);
            for (slot, (sequence, &end)) in sequences.iter().zip(ends).enumerate() {
                let rows = end.saturating_sub(sequence.evaluated).min(room);
                if rows > 0 {
                    spans.push(Span { slot, until: sequence.evaluated + rows });
                    room -= rows;
                }
            }
            let started = self.start(sequences, &spans, head, &[], cancel).await?;
            // On a GPU one step runs while the host prepares the inputs of the next step.
            prefill.finish().await?;
            prefill.running = Some((started, rows - room));
            if self.depth() == 1 {
                prefill.finish().await?;
            }
        }
    }

    /// Takes steps in flight whose results are not awaited.
    pub fn abandon(&mut self, steps: impl IntoIterator<Item = Pending>) {
        self.abandoned.extend(steps);
    }

    /// Waits for the abandoned steps. Their errors are ignored: if the device is lost, the next
    /// step returns that error.
    async fn settle(&mut self) {
        while let Some(step) = self.abandoned.pop() {
            drop(step.wait_async().await);
        }
    }

    /// The taps that a plan reads back after its output.
    pub fn taps(&self, key: PlanKey) -> Vec<Tap> {
        let rec = recording(self.model.architecture(), &self.adapted, &self.kinds, key);
        kernels::plan::requested(&rec, &self.options.plan).into_iter().cloned().collect()
    }
}
