//! Loses a device on purpose, for tests of what happens then.

use super::Device;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the step at which the process loses its device, counted from 1.
const AT: &str = "WEFT_TEST_LOSE_AT_STEP";

static STEPS: AtomicU64 = AtomicU64::new(0);

impl Device {
    /// Destroys the device, as a driver does that resets it. Every later call fails.
    pub fn lose(&self) {
        self.0.device.destroy();
    }

    /// Counts a step, and destroys the device if the environment names this step. A device that is
    /// opened later stays.
    pub(crate) fn lose_if_asked(&self) {
        let step = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
        if std::env::var(AT).is_ok_and(|at| at.parse() == Ok(step)) {
            self.lose();
        }
    }
}
