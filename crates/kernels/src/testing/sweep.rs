//! The sweep: cases of every operation, drawn so that every kernel runs, and compared with the
//! oracles.

use crate::caps::table::Table;
use crate::caps::{Caps, Class};
use crate::device::executor::Executor;
use crate::device::{Device, Limits, Select};
use crate::error::Error;
use crate::kernel::Access;
use crate::kernel::compose::{Piece, Shader};
use crate::kernel::random::Gen;
use crate::lower;
use crate::testing::cases::CASES;
use crate::testing::compare::Compare;
use crate::testing::parity::{Case, MakeCase, Ran};
use gguf::GgmlType;
use std::path::Path;

/// A device with the table of a discrete GPU. A software device then also splits few keys into many
/// parts.
///
/// # Errors
/// Same as [`Device::open`].
pub fn open(select: &Select, limits: Limits) -> Result<Device, Error> {
    let device = Device::open(select, limits)?;
    Ok(device.with_table(Table::usual(Class::Discrete, device.caps().cooperative)))
}

/// The outcome of one case, with the shaders that it ran.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub shaders: Vec<Shader>,
    /// Largest normalised mean squared error of the outputs.
    pub nmse: f64,
    /// The largest bound among the kernels that ran.
    pub bound: f64,
    /// Whether a kernel wrote past the end of an output.
    pub overrun: bool,
}

impl Outcome {
    /// Whether the error is within the bound (NaN is not), and nothing was written past an end.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.nmse <= self.bound && !self.overrun
    }

    /// The ratio by which outcomes are compared; larger is worse.
    fn badness(&self) -> f64 {
        if self.overrun { f64::INFINITY } else { self.nmse / self.bound }
    }
}

/// A case with the results of its oracles, which can be compared any number of times.
pub struct Known {
    case: Case,
    expected: Vec<Vec<u32>>,
}

impl Known {
    /// Runs the oracles.
    ///
    /// # Errors
    /// Errors of the CPU executor.
    pub fn new(case: Case) -> Result<Self, Error> {
        let expected = case.run(&Executor::Cpu, &case.options)?.0;
        Ok(Self { case, expected })
    }

    /// Runs the kernels and compares.
    ///
    /// # Errors
    /// Errors of the GPU executor.
    pub fn compare(&self, device: &Device, portable: bool) -> Result<Outcome, Error> {
        self.compare_over(u32::MAX, device, portable)
    }

    fn compare_over(&self, poison: u32, device: &Device, portable: bool) -> Result<Outcome, Error> {
        let options = self.case.options_on(device.caps()).portable(portable).guarded(true);
        Ok(self.outcome(self.case.ran(&Executor::Gpu(device.clone()), &options, poison)?))
    }

    /// Compares with the plan of a device with these capabilities, run on the host through the
    /// oracles of its parts.
    ///
    /// # Errors
    /// Errors of planning and of the CPU executor.
    pub fn compare_reference(&self, caps: &Caps) -> Result<Outcome, Error> {
        Ok(self.outcome(self.case.referenced(caps)?))
    }

    fn outcome(&self, Ran { outputs, shaders, overrun }: Ran) -> Outcome {
        assert_eq!(outputs.len(), self.expected.len(), "another number of outputs");
        let mut nmse = 0.0_f64;
        let compares = self.case.compare.iter().copied().chain(std::iter::repeat(Compare::Error));
        for ((got, expected), compare) in outputs.iter().zip(&self.expected).zip(compares) {
            nmse = nmse.max(compare.error(expected, got));
        }
        let bound = shaders.iter().map(|k| k.variant.kernel.nmse).fold(0.0, f64::max);
        Outcome { shaders, nmse, bound, overrun }
    }

    /// The same on a device whose limits are so small that everything that can be split is split,
    /// although the same kernels run: grids in two dimensions, and weights in several bindings.
    /// Unwritten memory is filled with a large finite value instead of NaN, because some operations
    /// skip NaN.
    ///
    /// # Errors
    /// Errors of the GPU executor.
    pub fn compare_split(&self, device: &Device, portable: bool) -> Result<Outcome, Error> {
        let whole = device.caps();
        let wanted = self.case.shaders(whole, portable)?;
        for max_grid in [self.split_grid(device, portable)?, whole.max_grid] {
            let mut caps = Caps { max_grid, max_binding_bytes: SPLIT_BYTES, ..whole.clone() };
            loop {
                let same = |got: Vec<Shader>| wanted.iter().all(|k| got.contains(k)) && got.iter().all(|k| wanted.contains(k));
                if self.case.shaders(&caps, portable).is_ok_and(same) {
                    match self.compare_over(LARGE, &device.with_caps(caps.clone()), portable) {
                        // Intermediates and single rows must fit in a binding; longer weights are
                        // split.
                        Err(Error::BindingTooLarge { .. }) => {}
                        other => return other,
                    }
                }
                if caps.max_binding_bytes >= whole.max_binding_bytes {
                    break;
                }
                caps.max_binding_bytes = (2 * caps.max_binding_bytes).min(whole.max_binding_bytes);
            }
        }
        self.compare_over(LARGE, device, portable)
    }
}

impl Known {
    /// Largest dimension of a grid, chosen so that grids have two dimensions. A kernel that writes
    /// a state has one workgroup per row of the step, never more than one dimension holds, so its
    /// grid must have no spare workgroups.
    fn split_grid(&self, device: &Device, portable: bool) -> Result<u32, Error> {
        let shaders = self.case.shaders(device.caps(), portable)?;
        let writes_state = |access: &Access| matches!(access, Access::KvMut | Access::KvBoth | Access::StateMut);
        if !shaders.iter().any(|shader| shader.variant.kernel.bindings.iter().any(|(_, access)| writes_state(access))) {
            return Ok(SPLIT_GRID);
        }
        let rows = self.case.input.positions.len() as u32;
        let divisor = (2..rows).find(|d| rows.is_multiple_of(*d));
        Ok(rows / divisor.unwrap_or(1))
    }
}

/// Workgroups per dimension when everything is split: few, and not a power of two.
const SPLIT_GRID: u32 = 5;

/// The bits of 1e38.
const LARGE: u32 = 0x7e96_7699;

/// The smallest binding size that is tried, in bytes.
const SPLIT_BYTES: u64 = 256;

/// Runs the case of `seed` on `device` and through the oracles.
///
/// # Errors
/// Errors of either executor.
pub fn check(device: &Device, make: MakeCase, seed: u64, portable: bool) -> Result<Outcome, Error> {
    Known::new(make(&mut Gen::new(seed)))?.compare(device, portable)
}

/// A shader that must be covered, and the cases that reach it.
#[derive(Clone, Debug)]
pub struct Target {
    pub shader: Shader,
    make: MakeCase,
}

/// Seeds that are tried for each wanted case that reaches a shader.
const PATIENCE: u64 = 64;

impl Target {
    /// Every shader that a device with these capabilities may run, with the cases of its variant's
    /// name, otherwise of its kernel's file, otherwise of its family.
    ///
    /// # Panics
    /// When the file that declares a kernel has no case.
    #[must_use]
    pub fn all(caps: &Caps) -> Vec<Self> {
        let (variants, cases) = (lower::variants().filter(|variant| variant.fits(caps)), CASES);
        let targets = variants.flat_map(|variant| {
            let file = variant.kernel.file;
            let stem = Path::new(file).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
            let named = |wanted: &str| cases.iter().find(|(name, _)| *name == wanted);
            let family = Path::new(file).parent().and_then(Path::file_name).and_then(|s| s.to_str()).unwrap_or_default();
            let case = named(variant.name).or_else(|| named(stem)).or_else(|| named(family));
            let make = case.unwrap_or_else(|| panic!("{file} has no parity case")).1;
            Shader::all(variant, &[0, caps.subgroup_threads()]).into_iter().map(move |shader| Self { shader, make })
        });
        targets.collect()
    }

    /// The weight format of the shader, if it has one.
    #[must_use]
    pub fn format(&self) -> Option<GgmlType> {
        self.shader
            .pieces
            .iter()
            .flatten()
            .find_map(|piece| if let Piece::Format(ty) | Piece::Units(ty) | Piece::Groups(ty) = piece { Some(*ty) } else { None })
    }

    /// The first case of these seeds that reaches the shader.
    pub fn find(&self, caps: &Caps, seeds: &mut impl Iterator<Item = u64>) -> Option<Case> {
        let mut cases = seeds.map(|seed| (self.make)(&mut Gen::new(seed).only(self.format())));
        cases.find(|case| case.shaders(caps, !self.shader.subgroups).is_ok_and(|shaders| shaders.contains(&self.shader)))
    }

    /// The first `wanted` cases that reach the shader, from `seed` on.
    ///
    /// # Panics
    /// When there are too few: a shader that the cases never run is not tested.
    pub fn cases(&self, caps: &Caps, seed: u64, wanted: usize) -> impl Iterator<Item = Case> {
        let mut seeds = seed..seed + PATIENCE * wanted as u64;
        (0..wanted).map(move |n| {
            let found = self.find(caps, &mut seeds);
            found.unwrap_or_else(|| panic!("case {n} of {}: its operation's cases do not reach it", self.shader.label()))
        })
    }

    /// Runs `wanted` cases from `seed` on, every second one split. Returns the worst outcome, by
    /// the ratio of error to bound.
    ///
    /// # Errors
    /// Errors of either executor.
    pub fn run(&self, device: &Device, seed: u64, wanted: usize) -> Result<Outcome, Error> {
        let mut worst: Option<Outcome> = None;
        for (n, case) in self.cases(device.caps(), seed, wanted).enumerate() {
            let known = Known::new(case)?;
            let compare = if n % 2 == 1 { Known::compare_split } else { Known::compare };
            let outcome = compare(&known, device, !self.shader.subgroups)?;
            if worst.as_ref().is_none_or(|w| outcome.badness() > w.badness()) {
                worst = Some(outcome);
            }
        }
        Ok(worst.expect("at least one case"))
    }
}
