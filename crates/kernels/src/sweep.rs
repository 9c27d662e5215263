//! The sweep: cases of every operation, drawn so that each kernel runs, and compared with the oracles.

use crate::compare::Compare;
use crate::compose::{Kernel, Piece};
use crate::device::{Caps, Device};
use crate::error::Error;
use crate::exec::Executor;
use crate::ops::ROWS;
use crate::parity::{Case, Gen, MakeCase, cases};
use crate::plan::PlanOptions;
use gguf::GgmlType;
use std::path::Path;

/// What one case showed about the kernels it ran.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub kernels: Vec<Kernel>,
    /// Worst normalised mean squared error over the outputs.
    pub nmse: f64,
    /// The loosest bound among the rows that ran.
    pub bound: f64,
}

impl Outcome {
    /// Whether the error is within the bound; one that is no number is not.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.nmse <= self.bound
    }
}

/// A case with what the oracles make of it, to be compared any number of times.
pub struct Known {
    case: Case,
    expected: Vec<Vec<u32>>,
}

impl Known {
    /// Runs the oracles.
    ///
    /// # Errors
    /// What the CPU executor gives.
    pub fn new(case: Case) -> Result<Self, Error> {
        let expected = case.run(&Executor::Cpu, &case.options)?.0;
        Ok(Self { case, expected })
    }

    /// Runs the kernels and compares.
    ///
    /// # Errors
    /// What the GPU executor gives.
    pub fn compare(&self, device: &Device, portable: bool) -> Result<Outcome, Error> {
        let options = PlanOptions { portable, ..self.case.options.clone() };
        let (got, kernels) = self.case.run(&Executor::Gpu(device.clone()), &options)?;
        assert_eq!(got.len(), self.expected.len(), "another number of outputs");
        let mut nmse = 0.0_f64;
        let compares = self.case.compare.iter().copied().chain(std::iter::repeat(Compare::Error));
        for ((got, expected), compare) in got.iter().zip(&self.expected).zip(compares) {
            nmse = nmse.max(compare.error(expected, got));
        }
        let bound = kernels.iter().map(|k| k.row.nmse).fold(0.0, f64::max);
        Ok(Outcome { kernels, nmse, bound })
    }
}

/// Runs the case that `seed` gives on `device` and through the oracles.
///
/// # Errors
/// What either executor gives.
pub fn check(device: &Device, make: MakeCase, seed: u64, portable: bool) -> Result<Outcome, Error> {
    Known::new(make(&mut Gen::new(seed)))?.compare(device, portable)
}

/// A kernel to be covered, and the cases that reach it.
#[derive(Clone, Debug)]
pub struct Target {
    pub kernel: Kernel,
    make: MakeCase,
}

/// Seeds that are tried for a case that reaches a kernel, per case wanted.
const PATIENCE: u64 = 64;

impl Target {
    /// Every kernel that a device of these capabilities may run, with the cases of its operation.
    ///
    /// # Panics
    /// When the file that declares a row has no case.
    #[must_use]
    pub fn all(caps: &Caps) -> Vec<Self> {
        let (rows, cases) = (ROWS.iter().copied(), cases());
        let targets = rows.flat_map(|row| {
            let stem = Path::new(row.file).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
            let case = cases.iter().find(|(name, _)| *name == stem);
            let make = case.unwrap_or_else(|| panic!("{} has no parity case", row.file)).1;
            Kernel::variants(row, caps.subgroups).into_iter().map(move |kernel| Self { kernel, make })
        });
        targets.collect()
    }

    /// The weight format of the kernel, if it has one.
    #[must_use]
    pub fn format(&self) -> Option<GgmlType> {
        self.kernel.pieces.iter().flatten().find_map(|piece| if let Piece::Format(ty) = piece { Some(*ty) } else { None })
    }

    /// The first `wanted` cases that reach the kernel, from `seed` on.
    ///
    /// # Panics
    /// When too few do: a kernel that its operation's cases never run is not tested.
    pub fn cases(&self, caps: &Caps, seed: u64, wanted: usize) -> impl Iterator<Item = Case> {
        let mut seeds = seed..seed + PATIENCE * wanted as u64;
        (0..wanted).map(move |n| {
            let found = seeds.by_ref().map(|seed| (self.make)(&mut Gen::new(seed).only(self.format()))).find(|case| {
                let kernels = case.kernels(caps, !self.kernel.subgroups);
                kernels.is_ok_and(|kernels| kernels.contains(&self.kernel))
            });
            found.unwrap_or_else(|| panic!("case {n} of {}: its operation's cases do not reach it", self.kernel.label()))
        })
    }

    /// Runs `wanted` cases from `seed` on and gives the worst outcome, by the ratio of error to bound.
    ///
    /// # Errors
    /// What either executor gives.
    pub fn run(&self, device: &Device, seed: u64, wanted: usize) -> Result<Outcome, Error> {
        let mut worst: Option<Outcome> = None;
        for case in self.cases(device.caps(), seed, wanted) {
            let outcome = Known::new(case)?.compare(device, !self.kernel.subgroups)?;
            if worst.as_ref().is_none_or(|w| outcome.nmse / outcome.bound > w.nmse / w.bound) {
                worst = Some(outcome);
            }
        }
        Ok(worst.expect("at least one case"))
    }
}
