//! The sweep: cases of every operation, drawn so that every kernel runs, and compared with the
//! oracles.

use crate::caps::Caps;
use crate::device::Device;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::agree::results::of_tensor;
use crate::exec::agree::rows::{Difference, of_draws};
use crate::exec::agree::{Agreement, ROUNDED};
use crate::graph::record::Node;
use crate::kernel::compose::{Piece, Shader};
use crate::kernel::random::Gen;
use crate::kernel::{Access, PEAK};
use crate::language::{self, Op, Primitive};
use crate::plan::Planned;
use crate::testing::Switches;
use crate::testing::cases;
use crate::testing::drawn::Drawn;
use crate::testing::parity::{Agreed, Case, MakeCase};
use gguf::GgmlType;
use std::collections::HashMap;
use std::path::Path;

#[cfg(not(target_arch = "wasm32"))]
pub use crate::testing::blocking::{check, open, refusal};

/// The outcome of one case, with the shaders that it ran.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub shaders: Vec<Shader>,
    /// The operation that agrees worst with its oracle, by the ratio of error to bound.
    pub worst: Agreement,
    /// Whether a kernel wrote past the end of an output.
    pub overrun: bool,
    /// The smallest case that fails in the same way, if one was looked for.
    pub smallest: Option<Drawn>,
}

impl From<Agreed> for Outcome {
    fn from(Agreed { agreements, shaders, overrun }: Agreed) -> Self {
        let worst = agreements.into_iter().max_by(|a, b| a.share().total_cmp(&b.share()));
        Self { shaders, worst: worst.expect("a case has operations"), overrun, smallest: None }
    }
}

impl Outcome {
    /// The outcome of a plan with these results, by the loosest bound of its kernels, or by `bound`
    /// if that is looser.
    pub(crate) fn of(planned: &Planned, expected: &[Vec<u32>], got: &[Vec<u32>], bound: f64) -> Self {
        let mut difference = Difference::default();
        for ((t, expected), got) in planned.read_back.iter().zip(expected).zip(got) {
            let draws =
                |part: &Node<Primitive>| matches!(&part.op, Primitive::Op(Op::Sample(sample)) if sample.y.id == t.id);
            let drawn = planned.parts.iter().any(draws);
            difference.worsen(if drawn { of_draws(expected, got) } else { of_tensor(*t, expected, got) });
        }
        let shaders: Vec<Shader> = planned.dispatches.iter().map(|placed| placed.shader.clone()).collect();
        let kernels = shaders.iter().map(Shader::label).collect();
        let bound = shaders.iter().map(|shader| shader.variant.kernel.nmse).fold(bound, f64::max);
        let peak = shaders.iter().map(|shader| shader.variant.peak).fold(PEAK, f64::max);
        let worst = Agreement {
            kernels,
            layer: None,
            rows: None,
            worst: "outputs".to_string(),
            difference,
            near: 0,
            bound,
            peak,
        };
        Self { shaders, worst, overrun: false, smallest: None }
    }

    /// Whether every operation agrees with its oracle, and nothing was written past an end.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.worst.holds() && !self.overrun
    }

    /// The ratio by which outcomes are compared; larger is worse.
    fn badness(&self) -> f64 {
        if self.overrun { f64::INFINITY } else { self.worst.share() }
    }
}

impl Case {
    /// Runs the kernels, and compares every operation of the plan with its oracles, from the inputs
    /// that the device read.
    ///
    /// # Errors
    /// Errors of either executor.
    pub async fn compare_async(&self, device: &Device, portable: bool) -> Result<Outcome, Error> {
        self.compare_over(u32::MAX, device, portable).await
    }

    async fn compare_over(&self, poison: u32, device: &Device, portable: bool) -> Result<Outcome, Error> {
        let options = self.options_on(device.caps()).portable(portable).guarded(true);
        Ok(self.agreed(&self.rec, None, device, &options, poison).await?.into())
    }

    /// Runs the plan of a device with these capabilities on the host, through the oracles of its
    /// parts, and compares with the oracles of what was recorded. They do not round, so plans that
    /// round have the bound of rounding.
    ///
    /// # Errors
    /// Errors of planning and of the CPU executor.
    pub async fn compare_reference_async(&self, caps: &Caps) -> Result<Outcome, Error> {
        let planned = self.planned(caps, false)?;
        let got = self.referenced(&planned).await?.0;
        let expected = self.run_async(&Executor::Cpu, &self.options).await?.0;
        Ok(Outcome::of(&planned, &expected, &got, ROUNDED))
    }

    /// Compares as [`Case::compare_async`] does, on a device whose limits are so small that
    /// everything that can be split is split: grids in two dimensions, and weights in several
    /// bindings. The kernels are the kernels that [`Case::compare_async`] runs. Unwritten memory is
    /// filled with a large finite value instead of NaN, because some operations skip NaN.
    ///
    /// # Errors
    /// Errors of either executor.
    pub async fn compare_split_async(&self, device: &Device, portable: bool) -> Result<Outcome, Error> {
        let whole = device.caps();
        let wanted = self.shaders(whole, portable)?;
        for max_grid in [self.split_grid(device, portable)?, whole.max_grid] {
            let mut caps = Caps { max_grid, max_binding_bytes: SPLIT_BYTES, ..whole.clone() };
            loop {
                let same =
                    |got: Vec<Shader>| wanted.iter().all(|k| got.contains(k)) && got.iter().all(|k| wanted.contains(k));
                if self.shaders(&caps, portable).is_ok_and(same) {
                    match self.compare_over(LARGE, &device.with_caps(caps.clone()), portable).await {
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
        self.compare_over(LARGE, device, portable).await
    }

    /// Largest dimension of a grid, chosen so that grids have two dimensions. A kernel that writes
    /// a state has one workgroup per row of the step, never more than one dimension holds, so its
    /// grid must have no spare workgroups.
    fn split_grid(&self, device: &Device, portable: bool) -> Result<u32, Error> {
        let shaders = self.shaders(device.caps(), portable)?;
        let writes_state = |access: &Access| access.writes() && *access != Access::Write;
        if !shaders.iter().any(|shader| shader.variant.kernel.bindings.iter().any(|(_, access)| writes_state(access))) {
            return Ok(SPLIT_GRID);
        }
        let rows = self.input.positions.len() as u32;
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

/// A shader that must be covered, and the cases that reach it.
#[derive(Clone, Debug)]
pub struct Target {
    pub shader: Shader,
    /// The stem of its cases.
    pub stem: &'static str,
    pub(crate) make: MakeCase,
}

/// Pipelines that a device keeps between targets. A software driver takes megabytes for one, and
/// targets share few.
const MOST_PIPELINES: usize = 32;

/// What shaders of different variants share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Aspect {
    Piece(Piece),
    /// Whether reductions use subgroup operations, and whether these need 32 threads.
    Form(bool, bool),
}

/// Seeds that are tried for each wanted case that reaches a shader.
const PATIENCE: u64 = 256;

impl Target {
    /// Every shader that a device with these capabilities may run, with the cases of its variant's
    /// name, otherwise of its kernel's file, otherwise of its family.
    ///
    /// # Panics
    /// When the file that declares a kernel has no case.
    #[must_use]
    pub fn all(caps: &Caps) -> Vec<Self> {
        let (variants, cases) = (language::variants().filter(|variant| variant.fits(caps)), cases());
        let targets = variants.flat_map(|variant| {
            let file = variant.kernel.file;
            let stem = Path::new(file).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
            let named = |wanted: &str| cases.iter().find(|(name, _)| *name == wanted);
            let family =
                Path::new(file).parent().and_then(Path::file_name).and_then(|s| s.to_str()).unwrap_or_default();
            let case = named(variant.name).or_else(|| named(stem)).or_else(|| named(family));
            let &(stem, make) = case.unwrap_or_else(|| panic!("{file} has no parity case"));
            Shader::all(variant, &[0, caps.subgroup_threads()]).into_iter().map(move |shader| Self {
                shader,
                stem,
                make,
            })
        });
        targets.collect()
    }

    /// Few of [`Target::all`] that still have every variant, both subgroup forms, and every weight
    /// format and every type of states in every way in which kernels read it. Of the shaders of a
    /// variant, it is the one with what the variants before it have least.
    #[must_use]
    pub fn few(caps: &Caps) -> Vec<Self> {
        let all = Self::all(caps);
        let mut taken: HashMap<Aspect, usize> = HashMap::new();
        let mut few: Vec<Self> = vec![];
        for variant in all.chunk_by(|a, b| a.shader.variant == b.shader.variant) {
            let least =
                variant.iter().min_by_key(|of| of.aspects().map(|of| taken.get(&of).unwrap_or(&0)).sum::<usize>());
            let least = least.expect("a variant has a shader");
            least.aspects().for_each(|of| *taken.entry(of).or_default() += 1);
            few.push(least.clone());
        }
        // What few variants can have was left out where something else was as rare.
        for target in &all {
            if target.aspects().any(|of| !taken.contains_key(&of)) {
                target.aspects().for_each(|of| *taken.entry(of).or_default() += 1);
                few.push(target.clone());
            }
        }
        few
    }

    /// The pieces of the shader, each once, and its subgroup form.
    fn aspects(&self) -> impl Iterator<Item = Aspect> {
        let Shader { pieces, subgroups, wide, .. } = &self.shader;
        let mut of: Vec<Aspect> = pieces.iter().flatten().map(|piece| Aspect::Piece(*piece)).collect();
        of.dedup();
        of.push(Aspect::Form(*subgroups, *wide));
        of.into_iter()
    }

    /// The weight format of the shader, if it has one.
    #[must_use]
    pub fn format(&self) -> Option<GgmlType> {
        self.shader.pieces.iter().flatten().find_map(
            |piece| {
                if let Piece::Weight(ty) = piece { Some(*ty) } else { None }
            },
        )
    }

    /// The first case of these seeds that reaches the shader.
    pub fn find(&self, caps: &Caps, seeds: &mut impl Iterator<Item = u64>) -> Option<(Drawn, Case)> {
        seeds.find_map(|seed| {
            let mut g = Gen::new(seed).only(self.format());
            let case = (self.make)(&mut g);
            let portable = !self.shader.subgroups;
            let drawn =
                || Drawn { stem: self.stem, portable, split: false, seed, choices: g.taken().to_vec(), fills: vec![] };
            self.reached(&case, caps).then(|| (drawn(), case))
        })
    }

    /// Whether a case runs the shader.
    pub(crate) fn reached(&self, case: &Case, caps: &Caps) -> bool {
        case.shaders(caps, !self.shader.subgroups).is_ok_and(|shaders| shaders.contains(&self.shader))
    }

    /// The first `wanted` cases that reach the shader, from `seed` on.
    ///
    /// # Panics
    /// When there are too few: a shader that the cases never run is not tested.
    pub fn cases(&self, caps: &Caps, seed: u64, wanted: usize) -> impl Iterator<Item = (Drawn, Case)> {
        let mut seeds = seed..seed + PATIENCE * wanted as u64;
        (0..wanted).map(move |n| {
            let found = self.find(caps, &mut seeds);
            found
                .unwrap_or_else(|| panic!("case {n} of {}: its operation's cases do not reach it", self.shader.label()))
        })
    }

    /// The worst outcome of `wanted` cases from `seed` on, by the ratio of error to bound, and its
    /// case. The first case has the number `from`. Cases with odd numbers are split.
    ///
    /// # Errors
    /// Errors of either executor.
    pub async fn worst_async(
        &self,
        device: &Device,
        seed: u64,
        from: usize,
        wanted: usize,
    ) -> Result<(Outcome, Drawn), Error> {
        let mut worst: Option<(Outcome, Drawn)> = None;
        for (n, (drawn, case)) in (from..).zip(self.cases(device.caps(), seed, wanted)) {
            let (split, portable) = (n % 2 == 1, !self.shader.subgroups);
            let outcome = match split {
                true => case.compare_split_async(device, portable).await?,
                false => case.compare_async(device, portable).await?,
            };
            if worst.as_ref().is_none_or(|(w, _)| outcome.badness() > w.badness()) {
                worst = Some((outcome, Drawn { split, ..drawn }));
            }
        }
        device.0.pipelines.drop_beyond(MOST_PIPELINES);
        Ok(worst.expect("at least one case"))
    }
}
