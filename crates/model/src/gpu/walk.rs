//! The steps of all plans that sessions of a model have, to compare every kernel with the host.

use crate::adapter::Adapted;
use crate::arch;
use crate::chunk;
use crate::error::Error;
use crate::model::Model;
use crate::options::SessionOptions;
use crate::plans::{self, capacities, rows_with_logits};
use crate::recording::{Head, recording};
use crate::runner::Runner;
use crate::sampling::Sampling;
use cpu_ref::KvType;
use kernels::plan::{Planned, plan};
use kernels::{Agreement, Class, Executor, Mirror, Precision, StepInput, Watch};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sequences of the batches. A software driver takes seconds to build the kernels of a plan, so it
/// has only the first.
const BATCHES: [u32; 3] = [3, 8, 32];

/// The least context of a batch.
const BATCH_CONTEXT: u32 = 512;

/// Positions behind the last border of a batch.
const BEHIND: u32 = 64;

/// Rows of each sequence in a step of the first batch.
const EACH: u32 = 7;

/// The largest number of rows that give logits.
const LOGITS: u32 = 64;

/// Rows of a batch are at this many positions, one behind the other.
const SPREAD: u32 = 5;

/// How a step of a [`Walk`] ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum End {
    /// Each sequence draws the most probable token.
    Greedy,
    /// Each sequence draws a token, with penalties.
    Drawn,
    /// Every row gives its logits.
    Logits,
}

/// A step of a [`Walk`]. Its text says where it is: `64 rows from position 0`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WalkStep {
    sequences: u32,
    rows: u32,
    /// The position of the first row.
    start: u32,
    end: End,
}

impl WalkStep {
    /// Sequences of the session or of the batch.
    #[must_use]
    pub fn sequences(&self) -> u32 {
        self.sequences
    }

    /// Rows of each sequence.
    fn each(self) -> u32 {
        self.rows / self.sequences
    }

    fn head(self) -> Head {
        match self.end {
            End::Greedy => Head::Sample { penalize: false },
            End::Drawn => Head::Sample { penalize: true },
            End::Logits => Head::Logits,
        }
    }
}

impl fmt::Display for WalkStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.each() {
            1 => f.write_str("1 row")?,
            rows => write!(f, "{rows} rows")?,
        }
        if self.sequences > 1 {
            write!(f, " of each of {} sequences", self.sequences)?;
        }
        write!(f, " {} position {}", if self.each() == 1 { "at" } else { "from" }, self.start)?;
        match self.end {
            End::Greedy => Ok(()),
            End::Drawn => f.write_str(", drawn with penalties"),
            End::Logits => f.write_str(", logits of all rows"),
        }
    }
}

/// Kernels that a model has with these options of a session, and that a walk did not compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRun {
    pub precision: Precision,
    pub kv: KvType,
    pub kernels: Vec<String>,
}

/// Compares steps of every plan that sessions of a model and a context have with the host: prompts
/// of every number of rows that has a plan, one row, one row of each sequence of a batch, and the
/// same at the positions where other kernels begin and at the end of the context. Rows of deep
/// contexts are drawn, not evaluated.
pub struct Walk {
    model: Model,
    options: SessionOptions,
    mirror: Mirror,
    steps: Vec<WalkStep>,
    runner: Option<Runner>,
}

impl Walk {
    /// A walk over the plans of `model`, a model on a GPU, with these options. `host` is the same
    /// model on the CPU. On the CPU there are no steps. Equal seeds compare equal rows.
    ///
    /// # Errors
    /// A context length that the model does not support; a limit of the device.
    pub fn new(model: &Model, host: &Model, options: &SessionOptions, seed: u64) -> Result<Self, Error> {
        let adapted = Adapted::none(model.weights());
        let options =
            chunk::settled(model.architecture(), &adapted, model.executor(), options, adapted.weights.bytes())?;
        let mirror = Mirror::new(Arc::clone(host.weights())).sampling(seed);
        let mut walk = Self { model: model.clone(), options, mirror, steps: vec![], runner: None };
        walk.steps = walk.all()?;
        Ok(walk)
    }

    /// The steps, in an order that makes each session once.
    #[must_use]
    pub fn steps(&self) -> &[WalkStep] {
        &self.steps
    }

    /// Runs a step on the device and on the host. An operation is left out if an operation with the
    /// same kernels, sizes and formats was compared in a step of this walk.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if a batch does not fit into memory; [`Error::Cancelled`]; errors of the
    /// executor.
    pub async fn run_async(&mut self, step: &WalkStep, cancel: &AtomicBool) -> Result<Vec<Agreement>, Error> {
        let options = self.options_of(step.sequences)?;
        if self.runner.as_ref().is_none_or(|runner| runner.options().sequences != step.sequences) {
            self.runner = None; // Frees the states of the session before.
            self.runner = Some(Runner::new(self.model.clone(), &options).await?);
        }
        let runner = self.runner.as_mut().expect("just made");
        let context = runner.context();
        runner.reserve(context).await?;
        let input = step.input();
        let vocabulary = self.model.summary().vocabulary;
        let tokens = runner.states.state(0);
        for (&position, &sequence) in input.positions.iter().zip(&input.sequences) {
            // Ids spread over the vocabulary: a prompt of text needs no tokenizer here.
            runner.states.write_tokens(
                tokens,
                sequence,
                position,
                &[position.wrapping_mul(7919).wrapping_add(sequence) % vocabulary],
            );
        }
        runner.agree_in(&mut self.mirror, &input, step.head(), Watch { cancel: Some(cancel), progress: None }).await
    }

    /// The kernels that this model has with these and other options of a session, and that are not
    /// among `ran`. A kernel is listed once, with the options of the walk first.
    ///
    /// # Errors
    /// A limit of the device.
    pub fn not_run(&self, ran: &HashSet<String>) -> Result<Vec<NotRun>, Error> {
        let own = (self.options.plan.precision, self.options.kv);
        let precisions = [own.0, Precision::Fast, Precision::F32];
        let kvs = [own.1, KvType::F16, KvType::F32, KvType::Q8_0];
        let (mut tried, mut known, mut all) = (vec![], ran.clone(), vec![]);
        for (precision, kv) in precisions.into_iter().flat_map(|precision| kvs.map(|kv| (precision, kv))) {
            if tried.contains(&(precision, kv)) {
                continue;
            }
            tried.push((precision, kv));
            let mut kernels = vec![];
            for sequences in self.batches() {
                let options = self.options.clone().precision(precision).kv(kv).sequences(sequences);
                for step in self.shallow(&options)? {
                    let names = self.planned(&options, step)?.map_or_else(Vec::new, |planned| planned.kernels());
                    kernels.extend(names.into_iter().filter(|name| known.insert(name.clone())));
                }
            }
            if !kernels.is_empty() {
                all.push(NotRun { precision, kv, kernels });
            }
        }
        Ok(all)
    }

    /// The numbers of sequences: one, and those of batches.
    fn batches(&self) -> Vec<u32> {
        let software =
            matches!(self.model.executor(), Executor::Gpu(device) if device.adapter().class == Class::Software);
        let batches = if software { &BATCHES[..1] } else { &BATCHES[..] };
        std::iter::once(1).chain(batches.iter().copied()).collect()
    }

    /// The steps from position 0: one for each plan of a session or a batch, and those that end
    /// otherwise.
    fn shallow(&self, options: &SessionOptions) -> Result<Vec<WalkStep>, Error> {
        let (sequences, context) = (options.sequences, options.context_for(self.model.summary())?);
        let step =
            |rows: u32, end| WalkStep { sequences, rows: rows.min(context.saturating_mul(sequences)), start: 0, end };
        if sequences > 1 {
            let several = if sequences == BATCHES[0] { Some(step(EACH * sequences, End::Drawn)) } else { None };
            return Ok(std::iter::once(step(sequences, End::Drawn)).chain(several).collect());
        }
        let drawn = capacities(self.model.executor(), options).into_iter().map(|rows| step(rows, End::Drawn));
        let logits = LOGITS.min(self.rows_with_logits(options));
        let mut steps: Vec<WalkStep> = drawn.chain([step(1, End::Greedy), step(logits, End::Logits)]).collect();
        steps.dedup();
        Ok(steps)
    }

    /// Most rows of a step that outputs the logits of every row.
    fn rows_with_logits(&self, options: &SessionOptions) -> u32 {
        rows_with_logits(self.model.summary().vocabulary, self.model.executor(), options)
    }

    /// The plan of a step; `None` on the CPU.
    fn planned(&self, options: &SessionOptions, step: WalkStep) -> Result<Option<Planned>, Error> {
        let Executor::Gpu(device) = self.model.executor() else { return Ok(None) };
        let capacities = capacities(self.model.executor(), options);
        let key = plans::key(self.rows_with_logits(options), options, &capacities, step.rows as usize, step.head());
        let kinds = arch::states(self.model.summary(), options);
        let rec = recording(self.model.architecture(), &Adapted::none(self.model.weights()), &kinds, key);
        Ok(Some(plan(&rec, device.caps(), &options.planning())?))
    }

    /// The options of a session or of a batch. A batch has a context behind the borders of its
    /// plan, so that it takes little memory.
    fn options_of(&self, sequences: u32) -> Result<SessionOptions, Error> {
        let options = self.options.clone().sequences(sequences);
        let context = options.context_for(self.model.summary())?;
        if sequences == 1 {
            return Ok(options.context(context));
        }
        let step = WalkStep { sequences, rows: sequences, start: 0, end: End::Drawn };
        let borders = self.planned(&options, step)?.map_or_else(Vec::new, |planned| planned.borders());
        let behind = borders.last().map_or(0, |border| border.saturating_add(BEHIND));
        Ok(options.context(context.min(behind.max(BATCH_CONTEXT))))
    }

    fn all(&self) -> Result<Vec<WalkStep>, Error> {
        let mut steps = vec![];
        if matches!(self.model.executor(), Executor::Cpu) {
            return Ok(steps);
        }
        for sequences in self.batches() {
            let options = self.options_of(sequences)?;
            let context = options.context_for(self.model.summary())?;
            for step in self.shallow(&options)? {
                let Some(last) = context.checked_sub(step.each()) else { continue };
                let borders = self.planned(&options, step)?.map_or_else(Vec::new, |planned| planned.borders());
                let mut starts: Vec<u32> =
                    borders.iter().flat_map(|&border| [border - 1, border]).chain([0, last]).collect();
                starts.retain(|start| *start <= last && (*start == 0 || step.end == End::Drawn));
                starts.sort_unstable();
                starts.dedup();
                steps.extend(starts.into_iter().map(|start| WalkStep { start, ..step }));
            }
        }
        // The prompts first: caches of deep steps are mixed from their rows. Then shallow steps, so
        // that each kernel is compared where most is known about its inputs.
        steps.sort_by_key(|step| (step.sequences, step.start > 0));
        Ok(steps)
    }
}

impl WalkStep {
    fn input(self) -> StepInput {
        let Self { sequences, rows, start, end } = self;
        let each = self.each();
        // The sequences of a batch are at different positions.
        let position = |row: u32| start - (row / each % SPREAD).min(start) + row % each;
        let (positions, of): (Vec<u32>, Vec<u32>) = (0..rows).map(|row| (position(row), row / each)).unzip();
        let sampling = match end {
            End::Logits => {
                return StepInput { out_rows: (0..rows).collect(), positions, sequences: of, ..StepInput::default() };
            }
            End::Greedy => Sampling::greedy(),
            End::Drawn => Sampling {
                repetition_penalty: 1.1,
                frequency_penalty: 0.1,
                presence_penalty: 0.1,
                temperature: 0.8,
                seed: 1,
                ..Sampling::default()
            },
        };
        let out_rows: Vec<u32> = (0..sequences).map(|sequence| (sequence + 1) * each - 1).collect();
        let sampling = (0..sequences).map(|sequence| sampling.params(sequence)).collect();
        StepInput { positions, sequences: of, out_rows, sampling, ..StepInput::default() }
    }
}
