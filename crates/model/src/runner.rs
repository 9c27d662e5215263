//! Runs steps of one model over one group of sequences: plans made once, states that grow.

use crate::arch::{self, Logits};
use crate::error::Error;
use crate::model::{Model, record};
use crate::session::SessionOptions;
use kernels::ops::{penalize, sample};
use kernels::{Counts, Pending, Plan, StateKind, States, StepInput, Watch};
use std::collections::HashMap;
use std::sync::Arc;

/// What a step ends with.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Head {
    /// The logits themselves.
    Logits(Logits),
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

pub(crate) struct Runner {
    pub model: Arc<Model>,
    pub states: States,
    kinds: Vec<StateKind>,
    plans: HashMap<PlanKey, Plan>,
    options: SessionOptions,
    context: u32,
}

/// Positions that states are first made for; they double from there.
const FIRST_POSITIONS: u32 = 1024;

impl Runner {
    pub fn new(model: Arc<Model>, options: &SessionOptions) -> Result<Self, Error> {
        let context = options.context_for(model.summary())?;
        let kinds = arch::states(model.summary(), options.kv);
        let states = States::new(model.executor(), &kinds, options.sequences, FIRST_POSITIONS.min(context))?;
        Ok(Self { model, states, kinds, plans: HashMap::new(), options: options.clone(), context })
    }

    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Positions per sequence at most.
    pub fn context(&self) -> usize {
        self.context as usize
    }

    /// Makes room for `positions` positions per sequence.
    pub fn reserve(&mut self, positions: usize) -> Result<(), Error> {
        if positions > self.context() {
            return Err(Error::ContextOverflow { needed: positions, limit: self.context() });
        }
        let (needed, current) = (positions as u32, self.states.capacity());
        if needed > current {
            self.states.grow(needed.max(2 * current).min(self.context))?;
        }
        Ok(())
    }

    /// The largest step whose logits, of all rows, one binding holds and 64 MB suffice for.
    pub fn rows_with_logits(&self) -> u32 {
        let row = 4 * u64::from(self.model.summary().vocabulary);
        let limit = match self.model.executor() {
            kernels::Executor::Gpu(device) => device.caps().max_binding_bytes.min(64 << 20),
            kernels::Executor::Cpu => 64 << 20,
        };
        ((limit / row) as u32).clamp(1, self.options.chunk)
    }

    /// The plan for a key, made when it is first asked for.
    pub fn plan(&mut self, key: PlanKey) -> Result<&mut Plan, Error> {
        if !self.plans.contains_key(&key) {
            let capacity = Counts { step: key.rows, out: key.out };
            let (logits, sampled) = match key.head {
                Head::Logits(logits) => (logits, None),
                Head::Sample { penalize } => (Logits::Rows, Some(penalize)),
            };
            let (mut rec, raw) = record(self.model.architecture(), &self.kinds, capacity, logits, sampled.is_some());
            if let Some(penalized) = sampled {
                let tokens = rec.state(0);
                let logits = if penalized { penalize(&mut rec, raw, tokens) } else { raw };
                let drawn = sample(&mut rec, logits, raw, tokens);
                rec.output(drawn);
            }
            let plan = self.model.executor().plan(rec, self.model.weights(), &self.options.plan)?;
            self.plans.insert(key, plan);
        }
        Ok(self.plans.get_mut(&key).expect("just made"))
    }

    /// Runs one step; room for its positions must be there.
    pub fn run(&mut self, key: PlanKey, input: &StepInput, watch: Watch<'_>) -> Result<Pending, Error> {
        self.plan(key)?;
        let plan = self.plans.get_mut(&key).expect("just made");
        Ok(plan.run(&mut self.states, input, watch)?)
    }

    /// The names and layers of what a plan with these options reads back after its outputs.
    pub fn taps(&self, key: PlanKey) -> Vec<(String, u32)> {
        let capacity = Counts { step: key.rows, out: key.out };
        let Head::Logits(logits) = key.head else { return vec![] };
        let (rec, _) = record(self.model.architecture(), &self.kinds, capacity, logits, false);
        kernels::plan::requested(&rec, &self.options.plan).iter().map(|t| (t.name.to_string(), t.layer)).collect()
    }

    /// Writes ids that the host knows into the token state.
    pub fn write_tokens(&mut self, sequence: u32, position: usize, ids: &[u32]) {
        let state = kernels::Recorder::new(Counts { step: 1, out: 1 }, &self.kinds).state(0);
        self.states.write_tokens(state, sequence, position as u32, ids);
    }
}
