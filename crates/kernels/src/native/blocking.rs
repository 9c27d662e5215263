//! The functions that wait, as functions that block. Each is one call over its `async` form.

use crate::device::executor::Executor;
use crate::device::pipelines::Preparing;
use crate::device::{AdapterSummary, Device, Limits, Select};
use crate::error::Error;
use crate::exec::agree::{Agreement, Mirror};
use crate::exec::profile::Profile;
use crate::exec::states::States;
use crate::exec::weights::Weights;
use crate::exec::{Outputs, Pending, Plan, Watch};
use crate::graph::input::StepInput;
use crate::graph::record::Recorder;
use crate::graph::tensor::{State, StateKind};
use crate::language::Primitive;
use crate::plan::PlanOptions;
use crate::platform;
use std::ops::Range;
use std::sync::Arc;

/// Runs a future to its end and blocks this thread meanwhile. All blocking functions of the
/// workspace are this call over their `async` form. A future of this crate waits for its device on
/// this thread then, which takes less time than another thread that wakes this one.
pub fn block_on<F: Future>(future: F) -> F::Output {
    platform::block_on(future)
}

impl Device {
    /// The adapters of this machine, best first.
    #[must_use]
    pub fn list() -> Vec<AdapterSummary> {
        block_on(Self::list_async())
    }

    /// Opens the adapter that `select` names.
    ///
    /// # Errors
    /// As [`Device::open_async`].
    pub fn open(select: &Select, limits: Limits) -> Result<Self, Error> {
        block_on(Self::open_async(select, limits))
    }

    /// Opens the best adapter of this machine, with the limits from `WEFT_LIMITS`.
    ///
    /// # Errors
    /// As [`Device::open_async`].
    pub fn auto() -> Result<Self, Error> {
        Self::open(&Select::Best, Limits::from_env())
    }

    /// Bytes of device memory allocated for buffers. Waits for submitted work first, so that its
    /// buffers are freed. None if the backend does not count them (Vulkan and DX12 do).
    #[must_use]
    pub fn allocated_bytes(&self) -> Option<u64> {
        let _ = self.0.device.poll(wgpu::PollType::wait_indefinitely());
        self.0.device.generate_allocator_report().map(|report| report.total_allocated_bytes)
    }
}

impl Preparing {
    /// Waits until all pipelines are built.
    pub fn finish(mut self) {
        self.wait();
    }
}

impl Executor {
    /// As [`Executor::plan_async`].
    ///
    /// # Errors
    /// As [`Executor::plan_async`].
    pub fn plan<O: Clone + Into<Primitive>>(
        &self,
        rec: Recorder<O>,
        weights: &Arc<Weights>,
        options: &PlanOptions,
    ) -> Result<Plan, Error> {
        block_on(self.plan_async(rec, weights, options))
    }
}

impl Weights {
    /// Loads all listed tensors.
    ///
    /// # Errors
    /// As [`Weights::load_async`].
    pub fn load(self) -> Result<Self, Error> {
        block_on(self.load_async(&|_| {}))
    }
}

impl States {
    /// As [`States::new_async`].
    ///
    /// # Errors
    /// As [`States::new_async`].
    pub fn new(executor: &Executor, kinds: &[StateKind], sequences: u32, capacity: u32) -> Result<Self, Error> {
        block_on(Self::new_async(executor, kinds, sequences, capacity))
    }

    /// As [`States::grow_async`].
    ///
    /// # Errors
    /// As [`States::grow_async`].
    pub fn grow(&mut self, capacity: u32) -> Result<(), Error> {
        block_on(self.grow_async(capacity))
    }

    /// As [`States::fork_async`].
    ///
    /// # Errors
    /// As [`States::fork_async`].
    pub fn fork(&self, positions: u32) -> Result<Self, Error> {
        block_on(self.fork_async(positions))
    }

    /// As [`States::read_async`].
    ///
    /// # Errors
    /// As [`States::read_async`].
    pub fn read<E: From<Error>>(
        &self,
        state: State,
        sequence: u32,
        positions: Range<u32>,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        block_on(self.read_async(state, sequence, positions, each))
    }

    /// As [`States::write_async`].
    ///
    /// # Errors
    /// As [`States::write_async`].
    pub fn write(&mut self, state: State, sequence: u32, positions: Range<u32>, bytes: &[u8]) -> Result<(), Error> {
        block_on(self.write_async(state, sequence, positions, bytes))
    }
}

impl Plan {
    /// As [`Plan::run_async`].
    ///
    /// # Errors
    /// As [`Plan::run_async`].
    pub fn run(&mut self, states: &mut States, input: &StepInput, watch: Watch<'_>) -> Result<Pending, Error> {
        block_on(self.run_async(states, input, watch))
    }

    /// As [`Plan::profile_async`].
    ///
    /// # Errors
    /// As [`Plan::profile_async`].
    pub fn profile(&mut self, states: &mut States, input: &StepInput) -> Result<Profile, Error> {
        block_on(self.profile_async(states, input))
    }

    /// As [`Plan::agree_async`].
    ///
    /// # Errors
    /// As [`Plan::agree_async`].
    pub fn agree(
        &mut self,
        mirror: &mut Mirror,
        states: &mut States,
        input: &StepInput,
        watch: Watch<'_>,
    ) -> Result<(Outputs, Vec<Agreement>), Error> {
        block_on(self.agree_async(mirror, states, input, watch))
    }

    /// As [`Plan::overrun_async`].
    ///
    /// # Errors
    /// As [`Plan::overrun_async`].
    pub fn overrun(&self, poison: u32) -> Result<bool, Error> {
        block_on(self.overrun_async(poison))
    }
}

impl Pending {
    /// Waits for the outputs.
    ///
    /// # Errors
    /// As [`Pending::wait_async`].
    pub fn wait(self) -> Result<Outputs, Error> {
        block_on(self.wait_async())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends<F: Future + Send>(_: F) {}

    /// A task of an executor with several threads may await every function that waits.
    #[test]
    fn futures_move_between_threads() {
        let device = crate::device::tests::device();
        let executor = Executor::from(&device);
        sends(Device::open_async(&Select::Best, Limits::Adapter));
        sends(Weights::new(&executor).load_async(&|_| {}));
        sends(States::new_async(&executor, &[], 1, 1));
        let mut states = States::new(&executor, &[StateKind::Tokens], 1, 1).expect("a state");
        sends(states.grow_async(2));
        sends(states.fork_async(1));
        sends(states.read_async(states.state(0), 0, 0..1, |_| Ok::<(), Error>(())));
        let rec = || Recorder::<Primitive>::new(crate::graph::tensor::Counts { step: 1, out: 1 }, &[StateKind::Tokens]);
        let weights = Arc::new(Weights::new(&executor));
        let options = PlanOptions::default();
        sends(executor.plan_async(rec(), &weights, &options));
        let mut plan = executor.plan(rec(), &weights, &options).expect("a plan");
        let input = StepInput { positions: vec![0], sequences: vec![0], ..StepInput::default() };
        sends(plan.profile_async(&mut states, &input));
        let mut mirror = Mirror::new(Arc::clone(&weights));
        sends(plan.agree_async(&mut mirror, &mut states, &input, Watch::default()));
        sends(plan.run_async(&mut states, &input, Watch::default()));
        sends(plan.run(&mut states, &input, Watch::default()).expect("an empty step").wait_async());
    }
}
