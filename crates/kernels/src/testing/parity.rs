//! Parity: random cases of every operation, run on a device and through the oracles.

#[cfg(not(target_arch = "wasm32"))]
pub mod calls;

use crate::caps::Caps;
use crate::device::Device;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::agree::{Agreement, Mirror};
use crate::exec::states::States;
use crate::exec::weights::{TensorBytes, Weights};
use crate::exec::{Plan, Watch};
use crate::graph::input::StepInput;
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Lead, Shape, State, StateKind, Tensor, Weight};
use crate::kernel::compose::Shader;
use crate::kernel::random::Gen;
use crate::language::Primitive;
use crate::plan::{Placed, PlanOptions, Planned, Precision};
use crate::testing::Switches;
use gguf::GgmlType;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// A weight. The bytes of a matrix and the contents of KV states are made when the case runs,
/// because many cases are made only to see which kernels they reach.
enum Loaded {
    Matrix { w: Weight, g: Gen, bytes: OnceLock<Vec<u8>> },
    Vector(Vec<f32>),
}

/// The contents of the KV states before a case runs.
struct Held {
    g: Gen,
    key: Option<Vec<f32>>,
    /// The row that has `key`; `None` if all rows have it.
    alone: Option<usize>,
    rows: OnceLock<Vec<(usize, u32, Vec<u8>)>>,
}

/// A prime number.
const STRETCHES: usize = 4093;

/// A recording with everything that is needed to run it.
pub struct Case {
    pub rec: Recorder<Primitive>,
    pub input: StepInput,
    pub options: PlanOptions,
    /// Whether the case rounds to f16. Without cooperative matrices it runs unrounded, because its
    /// oracles do not round to 8 bits.
    pub halves: bool,
    /// Workgroups that share long contexts, if given instead of the device table's number.
    pub split_workgroups: Option<u32>,
    /// The table's `workgroups`, if not that of the device.
    pub workgroups: Option<u32>,
    kinds: Vec<StateKind>,
    sequences: u32,
    capacity: u32,
    tokens: Vec<(u32, Vec<u32>)>,
    words: Vec<(State, Vec<f32>)>,
    held: Option<Held>,
    weights: Vec<Loaded>,
}

/// A block of values in [1/8, 2 + 1/8).
fn above_zero(g: &mut Gen, n: u32) -> Vec<f32> {
    g.units(n, 1.0).into_iter().map(|x| x + 1.125).collect()
}

impl Case {
    /// A case of `rows` rows without states.
    #[must_use]
    pub fn new(rows: u32) -> Self {
        Self::with_states(rows, &[], 1, 1)
    }

    /// A case of `rows` rows without states. In about half of the cases the plan holds exactly
    /// these rows. The plan of [`Case::new`] never holds an odd number of rows above one.
    #[must_use]
    pub fn perhaps_full(g: &mut Gen, rows: u32) -> Self {
        if g.coin() { Self::over(rows, rows, &[], 1, 1) } else { Self::new(rows) }
    }

    /// A case over states of `sequences` x `capacity` positions.
    #[must_use]
    pub fn with_states(rows: u32, kinds: &[StateKind], sequences: u32, capacity: u32) -> Self {
        // Plans hold more rows than most steps have, and some are full. Rows past either must not
        // be touched.
        let capacity_rows = if rows == 1 || rows.is_multiple_of(2) { rows } else { rows + 3 };
        Self::over(rows, capacity_rows, kinds, sequences, capacity)
    }

    fn over(rows: u32, capacity_rows: u32, kinds: &[StateKind], sequences: u32, capacity: u32) -> Self {
        let rec = Recorder::new(Counts { step: capacity_rows, out: capacity_rows }, kinds);
        let all: Vec<u32> = (0..rows).collect();
        let input = StepInput {
            positions: all.clone(),
            sequences: vec![0; rows as usize],
            out_rows: all,
            ..StepInput::default()
        };
        Self {
            rec,
            input,
            options: PlanOptions::plain(),
            halves: false,
            split_workgroups: None,
            workgroups: None,
            kinds: kinds.to_vec(),
            sequences,
            capacity,
            tokens: vec![],
            words: vec![],
            held: None,
            weights: vec![],
        }
    }

    /// This case with kernels that are compiled for their params ([`Switches::specialize`]).
    #[must_use]
    pub fn compiled(mut self) -> Self {
        self.options = self.options.specialize(true).sequences(self.sequences);
        self
    }

    /// A random input [rows, width].
    pub fn tensor(&mut self, g: &mut Gen, width: u32) -> Tensor {
        let rows = self.input.positions.len() as u32;
        let values = g.values(rows as usize * width as usize);
        self.given(Shape::new(Lead::Step, rows, width), values)
    }

    /// A random input [rows, width], uniform in [-amplitude, amplitude), for operations whose
    /// conditioning depends on the magnitude.
    pub fn uniform(&mut self, g: &mut Gen, width: u32, amplitude: f32) -> Tensor {
        let rows = self.input.positions.len() as u32;
        let values = g.units(rows * width, amplitude);
        self.given(Shape::new(Lead::Step, rows, width), values)
    }

    /// A random input [rows, width] of ordinary values above zero, for sums that must not be small
    /// by cancellation.
    pub fn positive(&mut self, g: &mut Gen, width: u32) -> Tensor {
        let rows = self.input.positions.len() as u32;
        let values = above_zero(g, rows * width);
        self.given(Shape::new(Lead::Step, rows, width), values)
    }

    /// A random input [rows, width] as from [`Case::tensor`], or rows of any magnitude, up to rows
    /// whose squares overflow.
    pub fn squared(&mut self, g: &mut Gen, width: u32) -> Tensor {
        if g.coin() {
            return self.tensor(g, width);
        }
        let rows = self.input.positions.len();
        let sizes: Vec<f32> = (0..rows).map(|_| g.pick(&[1e-3, 1.0, 1e25])).collect();
        g.block();
        let values = sizes.iter().flat_map(|size| vec![*size; width as usize]).map(|size| size * g.unit()).collect();
        let capacity = self.rec.capacity().step;
        self.given(Shape::new(Lead::Step, capacity, width), values)
    }

    /// A random input [rows, width] whose magnitudes double every 32 elements, starting small, so
    /// that the last elements dominate a sum of squares.
    pub fn rising(&mut self, g: &mut Gen, width: u32) -> Tensor {
        let rows = self.input.positions.len() as u32;
        let size = |i: u32| ((i as f32 - width as f32) / 32.0).exp2().max(1e-3);
        g.block();
        let values = (0..rows * width).map(|i| size(i % width) * g.unit()).collect();
        self.given(Shape::new(Lead::Step, rows, width), values)
    }

    /// A random input [rows, width] of small elements, except one per row, which is the last or
    /// any.
    pub fn alone(&mut self, g: &mut Gen, width: u32) -> Tensor {
        let rows = self.input.positions.len();
        let mut values: Vec<f32> = g.units(rows as u32 * width, 0.1);
        for row in values.chunks_mut(width as usize) {
            let any = g.id(width) as usize;
            row[g.pick(&[any, width as usize - 1])] = 5.0;
        }
        self.given(Shape::new(Lead::Step, rows as u32, width), values)
    }

    /// An input with these values, as many as the step needs.
    pub fn given(&mut self, shape: Shape, values: Vec<f32>) -> Tensor {
        let Counts { step, out } = self.rec.capacity();
        let rows = match shape.lead {
            Lead::Step => step,
            Lead::Out => out,
            Lead::OutFrom(_) | Lead::Fixed => shape.rows,
        };
        let shape = Shape { rows, ..shape };
        self.input.host.push(values);
        self.rec.host_input(self.input.host.len() as u32 - 1, shape)
    }

    /// A random matrix weight.
    pub fn weight(&mut self, g: &mut Gen, ty: GgmlType, rows: u32, cols: u32) -> Weight {
        let w = Weight::loaded(self.weights.len() as u32, ty, rows, cols);
        self.weights.push(Loaded::Matrix { w, g: g.apart(), bytes: OnceLock::new() });
        w
    }

    /// A random matrix, or a vector of one row, kept in a state of plain words.
    pub fn state_weight(&mut self, g: &mut Gen, state: State, rows: u32, cols: u32) -> Weight {
        self.words(g, state, rows * cols);
        self.rec.weight(state, rows, cols)
    }

    /// Fills a state of plain words with random f32.
    pub fn words(&mut self, g: &mut Gen, state: State, words: u32) {
        self.given_words(state, g.values(words as usize));
    }

    /// Fills a state of plain words with random f32 above zero.
    pub fn positive_words(&mut self, g: &mut Gen, state: State, words: u32) {
        self.given_words(state, above_zero(g, words));
    }

    /// Fills a state of plain words.
    pub fn given_words(&mut self, state: State, words: Vec<f32>) {
        self.words.push((state, words));
    }

    /// A random vector weight.
    pub fn vector(&mut self, g: &mut Gen, cols: u32) -> Weight {
        self.given_vector(g.values(cols as usize))
    }

    /// A vector weight with these values.
    pub fn given_vector(&mut self, values: Vec<f32>) -> Weight {
        let cols = values.len() as u32;
        self.weights.push(Loaded::Vector(values));
        Weight::loaded(self.weights.len() as u32 - 1, GgmlType::F32, 1, cols)
    }

    /// Puts the rows at random sequences and positions below `positions`. No two rows have both the
    /// same sequence and the same position, because workgroups write states in any order. Rows may
    /// share a position only if there are more rows than positions of all sequences.
    pub fn place(&mut self, g: &mut Gen, positions: u32) {
        let (n, s) = (self.input.positions.len(), self.sequences);
        self.input.positions = (0..n).map(|_| g.below(positions)).collect();
        self.input.sequences = (0..n).map(|_| g.below(s)).collect();
        if n as u64 > u64::from(positions) * u64::from(s) {
            return;
        }
        let mut taken = HashSet::new();
        for (position, sequence) in self.input.positions.iter_mut().zip(&mut self.input.sequences) {
            while !taken.insert((*position, *sequence)) {
                *position = (*position + 1) % positions;
                *sequence = if *position == 0 { (*sequence + 1) % s } else { *sequence };
            }
        }
    }

    /// Fills state 0 with ids below `vocab`.
    pub fn tokens(&mut self, g: &mut Gen, vocab: u32) {
        for s in 0..self.sequences {
            g.block();
            let ids = (0..self.capacity).map(|_| g.id(vocab)).collect();
            self.tokens.push((s, ids));
        }
    }

    /// Fills every row of the KV states, and the first state with `key` if it is given.
    pub fn hold(&mut self, g: &mut Gen, key: Option<Vec<f32>>) {
        self.held = Some(Held { g: g.apart(), key, alone: None, rows: OnceLock::new() });
    }

    /// Sets the key of one row in the first KV state.
    ///
    /// # Panics
    /// When the states are empty.
    pub fn hold_alone(&mut self, key: Vec<f32>, row: u32) {
        let held = self.held.take().expect("held rows");
        self.held = Some(Held { key: Some(key), alone: Some(row as usize), ..held });
    }

    /// The contents of all KV states: (state, sequence, rows).
    fn held(&self) -> &[(usize, u32, Vec<u8>)] {
        let Some(held) = &self.held else { return &[] };
        held.rows.get_or_init(|| {
            let mut g = held.g.clone();
            let kv = |(state, kind): (usize, &StateKind)| {
                if let StateKind::Kv { ty, width, .. } = *kind { Some((state, ty, width)) } else { None }
            };
            let states = self.kinds.iter().enumerate().filter_map(kv);
            let places = states.flat_map(|state| (0..self.sequences).map(move |sequence| (state, sequence)));
            places
                .map(|((state, ty, width), sequence)| {
                    let width = width as usize;
                    // Rows are slices of the same values.
                    let values: Vec<f32> = (0..width + STRETCHES).map(|_| 3.0 * g.unit()).collect();
                    let rows = self.kinds[state].rows(self.capacity) as usize;
                    let mut bytes = vec![0; rows * self.kinds[state].row_bytes()];
                    for at in 0..rows {
                        let row = &values[at * 37 % STRETCHES..][..width];
                        let key =
                            held.key.as_deref().filter(|_| state == 0 && held.alone.is_none_or(|alone| alone == at));
                        cpu_ref::kv_append(&mut bytes, ty, width, at, key.unwrap_or(row));
                    }
                    (state, sequence, bytes)
                })
                .collect()
        })
    }

    /// Makes this value an output.
    pub fn expect(&mut self, t: Tensor) {
        self.rec.output(t);
    }

    /// The options of the plan on a device with these capabilities.
    pub(crate) fn options_on(&self, caps: &Caps) -> PlanOptions {
        let fast = self.options.fast() && (caps.cooperative || !self.halves);
        self.options.clone().precision(if fast { Precision::Fast } else { Precision::F32 })
    }

    pub(crate) fn caps_on(&self, caps: &Caps) -> Caps {
        let mut caps = caps.clone();
        caps.table.split_workgroups = self.split_workgroups.unwrap_or(caps.table.split_workgroups);
        caps.table.workgroups = self.workgroups.unwrap_or(caps.table.workgroups);
        caps
    }

    /// The plan that a device with these capabilities would run.
    ///
    /// # Errors
    /// Errors of planning.
    pub fn planned(&self, caps: &Caps, portable: bool) -> Result<Planned, Error> {
        let options = self.options_on(caps).portable(portable);
        crate::plan::plan(&self.rec, &self.caps_on(caps), &options)
    }

    /// The shaders that a device with these capabilities would run.
    ///
    /// # Errors
    /// Errors of planning.
    pub fn shaders(&self, caps: &Caps, portable: bool) -> Result<Vec<Shader>, Error> {
        let steps = self.planned(caps, portable)?.dispatches.into_iter();
        Ok(steps.filter(|s| s.dispatch.when.holds(&self.input)).map(|s| s.shader).collect())
    }

    /// Runs on one executor. Returns the outputs and the shaders that made them.
    ///
    /// # Errors
    /// Errors of planning and of running.
    pub async fn run_async(
        &self,
        executor: &Executor,
        options: &PlanOptions,
    ) -> Result<(Vec<Vec<u32>>, Vec<Shader>), Error> {
        let (mut plan, mut states) = self.plan_on(&self.rec, executor, options).await?;
        let pending = plan.run_async(&mut states, &self.input, Watch::default()).await?;
        let outputs = pending.wait_async().await?;
        Ok((outputs.0, self.shaders_of(&plan)))
    }

    /// Runs a recording on a device, with intermediates filled with the word `poison`, and compares
    /// every operation with the host: with the recording's own operations, or with those of a plan
    /// that has the same shape.
    pub(crate) async fn agreed(
        &self,
        rec: &Recorder<Primitive>,
        expected: Option<Planned>,
        device: &Device,
        options: &PlanOptions,
        poison: u32,
    ) -> Result<Agreed, Error> {
        let (mut plan, mut states) = self.plan_on(rec, &Executor::Gpu(device.clone()), options).await?;
        let mut mirror = Mirror::new(Arc::new(self.loaded(&Executor::Cpu).await?.0)).expecting(expected);
        plan.poison(poison);
        let (_, agreements) = plan.agree_async(&mut mirror, &mut states, &self.input, Watch::default()).await?;
        let overrun = options.guarded && plan.overrun_async(poison).await?;
        Ok(Agreed { agreements, shaders: self.shaders_of(&plan), overrun })
    }

    async fn plan_on(
        &self,
        rec: &Recorder<Primitive>,
        executor: &Executor,
        options: &PlanOptions,
    ) -> Result<(Plan, States), Error> {
        let executor = &match executor {
            Executor::Gpu(device) => Executor::Gpu(device.with_caps(self.caps_on(device.caps()))),
            Executor::Cpu => Executor::Cpu,
        };
        let (weights, states) = self.loaded(executor).await?;
        Ok((executor.plan_async(rec.clone(), &Arc::new(weights), options).await?, states))
    }

    /// The shaders that a run of the plan dispatches.
    fn shaders_of(&self, plan: &Plan) -> Vec<Shader> {
        let ran = |s: &&Placed| s.dispatch.when.holds(&self.input);
        plan.planned().map_or_else(Vec::new, |p| p.dispatches.iter().filter(ran).map(|s| s.shader.clone()).collect())
    }

    /// Runs the plan of a device with these capabilities on the host, through the oracles of its
    /// parts. Returns the outputs, and the states after it.
    pub(crate) async fn referenced(&self, planned: &Planned) -> Result<(Vec<Vec<u32>>, States), Error> {
        let (weights, mut states) = self.loaded(&Executor::Cpu).await?;
        let mut plan = Plan::reference(planned, &Arc::new(weights));
        let pending = plan.run_async(&mut states, &self.input, Watch::default()).await?;
        let outputs = pending.wait_async().await?;
        Ok((outputs.0, states))
    }

    /// Gives out the whole content of the case, piece by piece. Two cases with the same content
    /// compute the same results.
    pub fn content(&self, take: &mut dyn FnMut(&[u8])) {
        let Self {
            rec,
            input,
            options,
            halves,
            split_workgroups,
            workgroups,
            kinds,
            sequences,
            capacity,
            tokens,
            words,
            held,
            weights,
        } = self;
        let Recorder { capacity: rows, nodes, origins, ropes, outputs, .. } = rec;
        take(format!("{rows:?} {nodes:?} {origins:?} {ropes:?} {outputs:?}").as_bytes());
        take(
            format!("{options:?} {halves} {split_workgroups:?} {kinds:?} {sequences} {capacity} {tokens:?}").as_bytes(),
        );
        if let Some(workgroups) = workgroups {
            take(&workgroups.to_le_bytes());
        }
        let StepInput { positions, sequences, ends, ids, firsts, out_rows, targets, loss_weights, sampling, host } =
            input;
        [positions, sequences, ends, ids, firsts, out_rows, targets]
            .into_iter()
            .for_each(|words| take(bytemuck::cast_slice(words)));
        take(bytemuck::cast_slice(loss_weights));
        take(bytemuck::cast_slice(sampling));
        host.iter().chain(words.iter().map(|(_, words)| words)).for_each(|values| take(bytemuck::cast_slice(values)));
        if let Some(Held { g, key, alone, .. }) = held {
            take(format!("{g:?} {alone:?}").as_bytes());
            take(bytemuck::cast_slice(key.as_deref().unwrap_or_default()));
        }
        for weight in weights {
            match weight {
                Loaded::Matrix { w, g, .. } => take(format!("{w:?} {g:?}").as_bytes()),
                Loaded::Vector(values) => take(bytemuck::cast_slice(values)),
            }
        }
    }

    /// The case's weights and states on an executor.
    async fn loaded(&self, executor: &Executor) -> Result<(Weights, States), Error> {
        let mut weights = Weights::new(executor);
        for (n, w) in self.weights.iter().enumerate() {
            match w {
                Loaded::Matrix { w: Weight { ty, rows, cols, .. }, g, bytes } => {
                    let bytes = bytes.get_or_init(|| g.clone().weight(*ty, *rows, *cols));
                    weights.matrix(&format!("w{n}"), *ty, *rows, *cols, &TensorBytes::Owned(bytes.as_slice().into()))?
                }
                Loaded::Vector(values) => weights.vector(&format!("w{n}"), values.clone()),
            };
        }
        let mut states = States::new_async(executor, &self.kinds, self.sequences, self.capacity).await?;
        for (sequence, ids) in &self.tokens {
            let state = self.rec.state(0);
            states.write_tokens(state, *sequence, 0, ids);
        }
        for (state, words) in &self.words {
            states.write_words(*state, 0, bytemuck::cast_slice(words));
        }
        for (state, sequence, bytes) in self.held() {
            let state = self.rec.state(*state);
            states.write_async(state, *sequence, 0..states.rows(state), bytes).await?;
        }
        Ok((weights.load_async(&|_| {}).await?, states))
    }
}

/// A case on a device, compared with the host.
pub(crate) struct Agreed {
    pub agreements: Vec<Agreement>,
    pub shaders: Vec<Shader>,
    /// Whether a kernel wrote past the end of an intermediate.
    pub overrun: bool,
}

/// Makes a case of one operation.
pub type MakeCase = fn(&mut Gen) -> Case;
