//! The CPU executor: runs a recording's operations by their oracles, with rows in parallel.

use super::angles::Angles;
use super::cuts::Far;
use super::watch::{Outputs, Watch};
use crate::error::Error;
use crate::exec::states::States;
use crate::exec::weights::Weights;
use crate::graph::host::{Host, Store};
use crate::graph::input::StepInput;
use crate::graph::operation::{Operation, Reference};
use crate::graph::record::{Node, Origin, Recorder, RopeTable, Stage};
use crate::graph::tensor::{Counts, Input, Place, Shape, State, StateKind, Tensor, Weight};
use crate::language::Primitive;
use crate::plan::{PlanOptions, Planned, requested};
use crate::platform::turn;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Operations with the last use of every value. The value's memory is freed after it.
pub struct CpuPlan {
    capacity: Counts,
    pub(super) nodes: Vec<Node<Primitive>>,
    pub(super) origins: Vec<(Origin, Shape)>,
    pub(super) ropes: Vec<Angles>,
    weights: Arc<Weights>,
    pub(super) read_back: Vec<Tensor>,
    /// For each node, the values that it uses last.
    pub(super) ends: Vec<Vec<u32>>,
}

impl CpuPlan {
    /// A plan over the operations as they were recorded, without lowering.
    pub(super) fn new<O: Into<Primitive>>(rec: Recorder<O>, weights: Arc<Weights>, options: &PlanOptions) -> Self {
        let mut read_back = rec.outputs.clone();
        read_back.extend(requested(&rec, options).iter().map(|t| t.tensor));
        let nodes = rec.nodes.into_iter().map(|node| Node { op: node.op.into(), stage: node.stage }).collect();
        Self::over(rec.capacity, nodes, rec.origins, rec.ropes, read_back, weights)
    }

    /// A plan over the operations as lowered for a device. It rounds where the kernels round.
    pub(super) fn reference(planned: &Planned, weights: Arc<Weights>) -> Self {
        let Planned { capacity, parts, origins, ropes, read_back, .. } = planned.clone();
        Self::over(capacity, parts, origins, ropes, read_back, weights)
    }

    fn over(
        capacity: Counts,
        nodes: Vec<Node<Primitive>>,
        origins: Vec<(Origin, Shape)>,
        ropes: Vec<RopeTable>,
        read_back: Vec<Tensor>,
        weights: Arc<Weights>,
    ) -> Self {
        let mut last = vec![None; origins.len()];
        for (at, node) in nodes.iter().enumerate() {
            let io = node.op.io();
            io.reads.iter().chain(&io.writes).for_each(|t| last[t.id as usize] = Some(at));
        }
        read_back.iter().for_each(|t| last[t.id as usize] = None);
        let mut ends = vec![vec![]; nodes.len()];
        for (id, at) in last.iter().enumerate() {
            if let (Some(at), Origin::Made) = (at, origins[id].0) {
                ends[*at].push(id as u32);
            }
        }
        let ropes = ropes.iter().map(Angles::new).collect();
        Self { capacity, nodes, origins, ropes, weights, read_back, ends }
    }

    pub(super) fn capacity(&self) -> Counts {
        self.capacity
    }

    pub(super) async fn run(
        &mut self,
        states: &mut States,
        input: &StepInput,
        watch: Watch<'_>,
    ) -> Result<Outputs, Error> {
        self.run_each(states, input, watch, &mut |_, _| {}).await
    }

    /// Runs a step. `after` is called after every operation. Between operations, and within those
    /// that take long, other work of the thread has turns. A cancel is seen after each of them.
    pub(super) async fn run_each(
        &mut self,
        states: &mut States,
        input: &StepInput,
        watch: Watch<'_>,
        after: &mut (dyn FnMut(&Host<'_>, &Node<Primitive>) + Send),
    ) -> Result<Outputs, Error> {
        let mut store = OnHost { weights: &self.weights, states };
        let mut host = Host::new(input.counts(), &mut store, self.origins.len());
        for (id, (origin, shape)) in self.origins.iter().enumerate() {
            if let Origin::Input(kind) = origin {
                *host.words(id as u32) = input_words(*kind, *shape, input, &self.ropes);
            }
        }
        let mut far = Far::over(self.nodes.iter().map(|node| node.stage));
        watch.at(far.now())?;
        let mut stage = Stage::default();
        for (node, ends) in self.nodes.iter().zip(&self.ends) {
            if node.stage != stage {
                stage = node.stage;
                watch.at(far.at(stage))?;
            }
            let mut running = node.op.in_turns(&mut host);
            poll_fn(|cx| match watch.go_on() {
                Ok(()) => running.as_mut().poll(cx).map(Ok),
                Err(cancelled) => Poll::Ready(Err(cancelled)),
            })
            .await?;
            drop(running);
            turn().await;
            after(&host, node);
            ends.iter().for_each(|&id| *host.words(id) = vec![]);
        }
        Ok(Outputs(self.read_back.iter().map(|t| host.words(t.id).clone()).collect()))
    }
}

/// The words of one input for this step's row counts.
pub(crate) fn input_words(kind: Input, shape: Shape, input: &StepInput, ropes: &[Angles]) -> Vec<u32> {
    let mut words = vec![0; shape.rows_at(input.counts()) as usize * shape.width() as usize];
    write_input(kind, input, ropes, &mut words);
    words
}

/// Writes the words of one input; `into` has exactly their number.
pub(crate) fn write_input(kind: Input, input: &StepInput, ropes: &[Angles], into: &mut [u32]) {
    let mut exact = |words: &[u32]| {
        assert_eq!(words.len(), into.len(), "{kind:?} for this step");
        into.copy_from_slice(words);
    };
    match kind {
        Input::Positions => exact(&input.positions),
        Input::Ends => exact(&input.ends),
        Input::Sequences => exact(&input.sequences),
        Input::Ids => exact(&input.ids),
        Input::Firsts => exact(&input.firsts),
        Input::Numbers => (0..).zip(into).for_each(|(n, word)| *word = n),
        Input::OutRows => exact(&input.out_rows),
        Input::Spans => exact(&input.spans()),
        Input::Rows => exact(&[input.counts().step, input.counts().out]),
        Input::Targets => exact(&input.targets),
        Input::LossWeights => exact(bytemuck::cast_slice(&input.loss_weights)),
        Input::Sampling => exact(bytemuck::cast_slice(&input.sampling)),
        Input::Host(n) => exact(bytemuck::cast_slice(&input.host[n as usize])),
        Input::Rope(n) => ropes[n as usize].write(&input.positions, bytemuck::cast_slice_mut(into)),
    }
}

/// Weights and states of the CPU executor.
pub(super) struct OnHost<'a> {
    pub weights: &'a Weights,
    pub states: &'a mut States,
}

impl Store for OnHost<'_> {
    fn vector(&self, weight: Weight) -> &[f32] {
        match weight.place {
            Place::Loaded(n) => self.weights.values_of(n),
            Place::State(s) => self.states.host_words(s),
        }
    }

    fn matrix(&self, weight: Weight) -> cpu_ref::Rows<'_> {
        match weight.place {
            Place::Loaded(n) => self.weights.matrix_of(n),
            Place::State(s) => cpu_ref::Rows::new(weight.ty, weight.cols as usize, self.states.host(s)),
        }
    }

    fn kind(&self, state: State) -> StateKind {
        self.states.kind(state)
    }

    fn rows(&self, state: State) -> u32 {
        self.states.rows(state)
    }

    fn state(&self, state: State) -> &[u8] {
        self.states.host(state)
    }

    fn state_mut(&mut self, state: State) -> &mut [u8] {
        self.states.host_mut(state)
    }
}
