//! What the dispatches of a case must leave in their buffers, by the oracles: for hosts that
//! interpret kernels.

use crate::caps::Caps;
use crate::error::Error;
use crate::exec::agree::results::of_state;
use crate::exec::states::States;
use crate::native::blocking::block_on;
use crate::plan::Planned;
use crate::testing::parity::Case;
use crate::testing::parity::calls::{Bound, Calls};
use crate::testing::sweep::Outcome;

/// The outputs and the states that the oracles of the parts of a plan make. They round as its
/// kernels do.
pub struct Expected {
    planned: Planned,
    outputs: Vec<Vec<u32>>,
    states: States,
}

impl Case {
    /// What [`Case::calls`] must compute on a device with these capabilities.
    ///
    /// # Errors
    /// Errors of planning and of the CPU executor.
    pub fn expected(&self, caps: &Caps, portable: bool) -> Result<Expected, Error> {
        let planned = self.planned(caps, portable)?;
        let (outputs, states) = block_on(self.referenced(&planned))?;
        Ok(Expected { planned, outputs, states })
    }
}

impl Expected {
    /// Compares the contents of the buffers after the dispatches: every output and every state.
    #[must_use]
    pub fn compare(&self, calls: &Calls, buffers: &[Vec<u8>]) -> Outcome {
        let words = |at: &Bound| bytemuck::pod_collect_to_vec(&buffers[at.buffer][at.bytes.clone()]);
        let got: Vec<Vec<u32>> = calls.results.iter().map(|(_, at)| words(at)).collect();
        let mut outcome = Outcome::of(&self.planned, &self.outputs, &got, 0.0);
        for n in 0..self.states.len() {
            let state = self.states.state(n);
            let expected = self.states.host(state);
            let difference = of_state(self.states.kind(state), expected, &buffers[calls.states + n][..expected.len()]);
            outcome.worst.difference.worsen(difference);
        }
        outcome
    }
}
