//! A recording compiled for an executor, and its runs.

use super::cpu::CpuPlan;
use super::gpu::GpuPlan;
use super::pending::Pending;
use super::room::Room;
use super::states::States;
use super::watch::Watch;
use super::weights::Weights;
use crate::device::executor::Executor;
use crate::device::pipelines::Preparing;
use crate::error::Error;
use crate::graph::input::StepInput;
use crate::graph::record::Recorder;
use crate::graph::tensor::Counts;
use crate::language::Primitive;
use crate::plan::{PlanOptions, Planned, plan};
use std::sync::Arc;

impl Executor {
    /// Starts to build the pipelines of these recordings in the background, in this order.
    ///
    /// # Errors
    /// A limit of the device. A failed pipeline is reported by the plan that needs it.
    pub fn prepare<O: Clone + Into<Primitive>>(
        &self,
        recordings: &[Recorder<O>],
        options: &PlanOptions,
    ) -> Result<Preparing, Error> {
        let Self::Gpu(device) = self else { return Ok(Preparing::default()) };
        let mut shaders = vec![];
        for rec in recordings {
            shaders.extend(plan(rec, device.caps(), options)?.dispatches.into_iter().map(|placed| placed.shader));
        }
        Ok(device.prepare(shaders))
    }

    /// Compiles a recording and allocates its buffers, except weights and states.
    ///
    /// # Errors
    /// A failed allocation, or a limit of the device.
    pub async fn plan_async<O: Clone + Into<Primitive>>(
        &self,
        rec: Recorder<O>,
        weights: &Arc<Weights>,
        options: &PlanOptions,
    ) -> Result<Plan, Error> {
        self.plan_in_async(rec, weights, options, &mut Room::default()).await
    }

    /// As [`Executor::plan_async`], with the intermediates in this room.
    ///
    /// # Errors
    /// As [`Executor::plan_async`].
    pub async fn plan_in_async<O: Clone + Into<Primitive>>(
        &self,
        rec: Recorder<O>,
        weights: &Arc<Weights>,
        options: &PlanOptions,
        room: &mut Room,
    ) -> Result<Plan, Error> {
        Ok(match self {
            Self::Gpu(device) => {
                Plan(Compiled::Gpu(Box::new(GpuPlan::new(device, rec, Arc::clone(weights), options, room).await?)))
            }
            Self::Cpu => Plan(Compiled::Cpu(Box::new(CpuPlan::new(rec, Arc::clone(weights), options)))),
        })
    }
}

/// A recording compiled for an executor.
pub struct Plan(pub(crate) Compiled);

/// The form that a plan has on each executor.
pub(crate) enum Compiled {
    Gpu(Box<GpuPlan>),
    Cpu(Box<CpuPlan>),
}

impl Plan {
    /// A plan lowered for a device, run on the host by the oracles of its parts. They round where
    /// the device's kernels round. Weights and states must belong to [`Executor::Cpu`].
    #[must_use]
    pub fn reference(planned: &Planned, weights: &Arc<Weights>) -> Self {
        Self(Compiled::Cpu(Box::new(CpuPlan::reference(planned, Arc::clone(weights)))))
    }

    /// Starts a run. States are written in place. [`Pending`] returns the outputs.
    ///
    /// # Errors
    /// [`Error::ContextOverflow`] before anything runs, [`Error::Cancelled`], device errors.
    pub async fn run_async(
        &mut self,
        states: &mut States,
        input: &StepInput,
        watch: Watch<'_>,
    ) -> Result<Pending, Error> {
        let capacity = self.capacity();
        let counts = input.counts();
        assert!(
            counts.step <= capacity.step && counts.out <= capacity.out,
            "{counts:?} rows in a plan for {capacity:?}"
        );
        match &mut self.0 {
            Compiled::Gpu(plan) => plan.run(states, input, watch).await.map(Pending::gpu),
            Compiled::Cpu(plan) => plan.run(states, input, watch).await.map(Pending::cpu),
        }
    }

    /// The largest row counts that the plan accepts.
    #[must_use]
    pub fn capacity(&self) -> Counts {
        match &self.0 {
            Compiled::Gpu(plan) => plan.planned().capacity,
            Compiled::Cpu(plan) => plan.capacity(),
        }
    }

    /// Fills every intermediate, and the buffer bound for absent operands, with this word. A read
    /// of unwritten memory then shows in the results.
    pub fn poison(&mut self, word: u32) {
        if let Compiled::Gpu(plan) = &mut self.0 {
            plan.poison(word);
        }
    }

    /// Whether a run wrote past the end of an intermediate. The plan must be guarded, and poisoned
    /// with this word before the run.
    ///
    /// # Errors
    /// Device errors.
    pub async fn overrun_async(&self, poison: u32) -> Result<bool, Error> {
        match &self.0 {
            Compiled::Gpu(plan) => plan.overrun(poison).await,
            Compiled::Cpu(_) => Ok(false),
        }
    }

    /// The compiled plan; none on the CPU.
    #[must_use]
    pub fn planned(&self) -> Option<&Planned> {
        match &self.0 {
            Compiled::Gpu(plan) => Some(plan.planned()),
            Compiled::Cpu(_) => None,
        }
    }
}
