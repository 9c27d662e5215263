//! The sweep as functions that block, and what looks for the smallest case that fails.

use crate::caps::table::Table;
use crate::caps::{Caps, Class};
use crate::device::executor::Executor;
use crate::device::{Device, Limits, Select};
use crate::error::Error;
use crate::kernel::compose::Shader;
use crate::kernel::random::Gen;
use crate::native::blocking::block_on;
use crate::plan::PlanOptions;
use crate::testing::drawn::Drawn;
use crate::testing::parity::{Case, MakeCase};
use crate::testing::shrinking::Shrinking;
use crate::testing::sweep::{Outcome, Target};
use proptest::test_runner::{Config, TestCaseError, TestCaseResult, TestError, TestRunner};

/// A device with the table of a discrete GPU. A software device then also splits few keys into many
/// parts.
///
/// # Errors
/// The errors of [`Device::open`].
pub fn open(select: &Select, limits: Limits) -> Result<Device, Error> {
    let device = Device::open(select, limits)?;
    Ok(device.with_table(Table::usual(Class::Discrete, device.caps().cooperative)))
}

/// The errors of a shader's text; `None` if it is WGSL.
#[must_use]
pub fn refusal(shader: &Shader) -> Option<String> {
    let source = shader.source();
    wgpu::naga::front::wgsl::parse_str(&source).err().map(|e| e.emit_to_string(&source))
}

/// Runs the case of `seed` on `device` and through the oracles.
///
/// # Errors
/// Errors of either executor.
pub fn check(device: &Device, make: MakeCase, seed: u64, portable: bool) -> Result<Outcome, Error> {
    make(&mut Gen::new(seed)).compare(device, portable)
}

/// The configuration of runs of so many cases. A failing case shrinks for at most five minutes, and
/// the tests keep it themselves, under the stem of its operation.
#[must_use]
pub fn config(cases: u32) -> Config {
    Config { cases, max_shrink_iters: 4096, max_shrink_time: 300_000, failure_persistence: None, ..Config::default() }
}

/// Whether the case agrees with its oracles on a device.
///
/// # Errors
/// A failure for the test runner if it does not.
pub fn holds(drawn: &Drawn, device: &Device) -> TestCaseResult {
    match drawn.compare(device) {
        Ok(outcome) if outcome.holds() => Ok(()),
        Ok(outcome) => Err(TestCaseError::fail(format!("{:?}, wrote past an end: {}", outcome.worst, outcome.overrun))),
        Err(e) => Err(TestCaseError::fail(e.to_string())),
    }
}

impl Case {
    /// As [`Case::run_async`].
    ///
    /// # Errors
    /// As [`Case::run_async`].
    pub fn run(&self, executor: &Executor, options: &PlanOptions) -> Result<(Vec<Vec<u32>>, Vec<Shader>), Error> {
        block_on(self.run_async(executor, options))
    }

    /// As [`Case::compare_async`].
    ///
    /// # Errors
    /// As [`Case::compare_async`].
    pub fn compare(&self, device: &Device, portable: bool) -> Result<Outcome, Error> {
        block_on(self.compare_async(device, portable))
    }

    /// As [`Case::compare_split_async`].
    ///
    /// # Errors
    /// As [`Case::compare_split_async`].
    pub fn compare_split(&self, device: &Device, portable: bool) -> Result<Outcome, Error> {
        block_on(self.compare_split_async(device, portable))
    }

    /// As [`Case::compare_reference_async`].
    ///
    /// # Errors
    /// As [`Case::compare_reference_async`].
    pub fn compare_reference(&self, caps: &Caps) -> Result<Outcome, Error> {
        block_on(self.compare_reference_async(caps))
    }
}

impl Drawn {
    /// Runs the case on a device and compares it with the oracles.
    ///
    /// # Errors
    /// Errors of either executor.
    pub fn compare(&self, device: &Device) -> Result<Outcome, Error> {
        let compare = if self.split { Case::compare_split } else { Case::compare };
        compare(&self.case(), device, self.portable)
    }

    /// The smallest case that fails as this one does, or `None` if this one does not fail.
    pub fn smallest(self, holds: impl Fn(&Self) -> TestCaseResult) -> Option<Self> {
        let mut runner = TestRunner::new(config(1));
        match runner.run_one(Shrinking::of(self), |drawn| holds(&drawn)) {
            Err(TestError::Fail(_, drawn)) => Some(drawn),
            _ => None,
        }
    }
}

impl Target {
    /// Runs `wanted` cases from `seed` on, every second one split. Returns the worst outcome, by
    /// the ratio of error to bound. If a case fails, the outcome has the smallest that does.
    ///
    /// # Errors
    /// Errors of either executor.
    pub fn run(&self, device: &Device, seed: u64, wanted: usize) -> Result<Outcome, Error> {
        self.run_from(device, seed, 0, wanted)
    }

    /// Runs `wanted` cases from `seed` on and returns the worst outcome, as [`run`](Self::run)
    /// does. The first case has the number `from`. Cases with odd numbers are split.
    ///
    /// # Errors
    /// Errors of either executor.
    pub fn run_from(&self, device: &Device, seed: u64, from: usize, wanted: usize) -> Result<Outcome, Error> {
        let (mut outcome, drawn) = block_on(self.worst_async(device, seed, from, wanted))?;
        if !outcome.holds() {
            outcome.smallest = self.smallest(device, drawn);
        }
        Ok(outcome)
    }

    /// The smallest case that reaches the shader and fails as this one does.
    #[must_use]
    pub fn smallest(&self, device: &Device, drawn: Drawn) -> Option<Drawn> {
        drawn.smallest(|drawn| match self.reached(&drawn.case(), device.caps()) {
            true => holds(drawn, device),
            false => Err(TestCaseError::reject("does not reach the shader")),
        })
    }
}
