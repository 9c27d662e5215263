//! Shows that `weft doctor` finds faults: plants a factor of 1.1 in kernels that it runs, one at a
//! time.

use anyhow::{Context, Result, bail, ensure};
use kernels::{Agreement, Device, Executor, Limits, Precision, Select};
use model::{KvType, Model, ModelFile, SessionOptions, Walk, WalkStep};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Plant a fault in kernels that `weft doctor` runs with a model, one at a time, and tell which it
/// finds: floats are 1.1 times as large, indices one larger
#[derive(clap::Args)]
pub struct Args {
    /// A GGUF file [default: the model that weft ships]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Draws the kernels, and what the doctor draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of kernels; 0 for all
    #[arg(long, default_value_t = 10)]
    kernels: usize,
    /// Only kernels whose name contains this
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    only: String,
    /// Part of an adapter's name
    #[arg(long, default_value = "")]
    device: String,
    /// Context length
    #[arg(long)]
    ctx: Option<u32>,
    /// Use an f32 cache and no rounding
    #[arg(long)]
    f32: bool,
}

/// The default model, whose bytes are a part of this program: a copied binary needs no file.
const DEFAULT: &[u8] = include_bytes!("../../crates/cli/assets/default.gguf");

/// Opens a model file again and again.
type Open<'a> = &'a dyn Fn() -> Result<ModelFile>;

pub fn run(args: &Args) -> Result<bool> {
    let select = if args.device.is_empty() { Select::Best } else { Select::Name(args.device.clone()) };
    let device = Device::open(&select, Limits::from_env())?;
    let file = || match &args.model {
        Some(path) => ModelFile::open(path).with_context(|| path.display().to_string()),
        None => default_model(),
    };
    let mut options = SessionOptions::default().context(args.ctx);
    if args.f32 {
        options = options.kv(KvType::F32).precision(Precision::F32);
    }
    let doctor = Doctor::new(&file, &device, options, args.seed)?;
    println!("seed {}, {} kernels on {}", args.seed, doctor.ran.len(), device.adapter().name);
    let mut missed = 0;
    for kernel in doctor.drawn(args.kernels, &args.only) {
        let found = doctor.finds(&kernel)?;
        println!("{:<6} {kernel}", if found { "found" } else { "MISSED" });
        missed += usize::from(!found);
    }
    Ok(missed == 0)
}

fn default_model() -> Result<ModelFile> {
    Ok(ModelFile::new(gguf::Gguf::from_bytes(DEFAULT.to_vec())?)?)
}

/// The walk of the doctor over the plans of a model, without faults.
struct Doctor<'a> {
    open: Open<'a>,
    device: Device,
    host: Model,
    options: SessionOptions,
    seed: u64,
    /// The steps in which each kernel was compared.
    ran: BTreeMap<String, Vec<WalkStep>>,
}

impl<'a> Doctor<'a> {
    /// Compares all kernels. An error names those that do not agree without a fault.
    fn new(open: Open<'a>, device: &Device, options: SessionOptions, seed: u64) -> Result<Self> {
        let host = open()?.on(&Executor::Cpu)?;
        let mut doctor = Self { open, device: device.clone(), host, options, seed, ran: BTreeMap::new() };
        let mut walk = doctor.walk(device)?;
        let mut wrong = vec![];
        for step in walk.steps().to_vec() {
            for of in compared(&mut walk, &step)? {
                if !of.holds() {
                    wrong.push(format!("{step}: {of:?}"));
                }
                for kernel in of.kernels {
                    let steps = doctor.ran.entry(kernel).or_default();
                    if !steps.contains(&step) {
                        steps.push(step);
                    }
                }
            }
        }
        ensure!(wrong.is_empty(), "without a fault:\n{}", wrong.join("\n"));
        Ok(doctor)
    }

    fn walk(&self, device: &Device) -> Result<Walk> {
        let model = (self.open)()?.on(device)?;
        Ok(Walk::new(&model, &self.host, &self.options, self.seed)?)
    }

    /// Some of the kernels, by the seed.
    fn drawn(&self, count: usize, only: &str) -> Vec<String> {
        let mut left: Vec<&String> = self.ran.keys().filter(|kernel| kernel.contains(only)).collect();
        let count = if count == 0 { left.len() } else { count.min(left.len()) };
        let mut state = self.seed;
        let mut below = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        (0..count).map(|_| left.swap_remove(below(left.len())).clone()).collect()
    }

    /// Whether a comparison with a fault in this kernel fails, and names the kernel.
    fn finds(&self, kernel: &str) -> Result<bool> {
        let Some(steps) = self.ran.get(kernel) else { bail!("{kernel} does not run") };
        let mut walk = self.walk(&self.device.with_fault(kernel))?;
        for step in steps {
            let wrong = compared(&mut walk, step)?.into_iter().filter(|of| !of.holds());
            if wrong.flat_map(|of| of.kernels).any(|name| name == kernel) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn compared(walk: &mut Walk, step: &WalkStep) -> Result<Vec<Agreement>> {
    walk.run(step, &AtomicBool::new(false)).with_context(|| step.to_string())
}

#[cfg(test)]
#[path = "../../crates/model/tests/common/mod.rs"]
mod common;

#[cfg(test)]
mod tests {
    use super::common::{Tiny, open};
    use super::*;

    /// Kernels that do not agree with a fault of their own are found, and none without a fault.
    fn all_found(file: Open<'_>, options: SessionOptions, seed: u64, count: usize) {
        let device = Device::auto().expect("these tests need a Vulkan, Metal or DX12 driver");
        let doctor = Doctor::new(file, &device, options, seed).unwrap();
        let drawn = doctor.drawn(count, "");
        assert_eq!(drawn.len(), count, "{:?}", doctor.ran.keys());
        for kernel in drawn {
            assert!(doctor.finds(&kernel).unwrap(), "a fault in {kernel} is not found");
        }
    }

    #[test]
    fn the_doctor_finds_a_factor_in_drawn_kernels_of_the_default_model() {
        all_found(&default_model, SessionOptions::default().context(300).chunk(96), 41, 6);
    }

    #[test]
    fn the_doctor_finds_a_factor_in_drawn_kernels_of_a_mixture_of_experts() {
        let tiny = Tiny { feed_forward: 768, ..Tiny::qwen3moe().mixed() };
        all_found(&|| Ok(open(&tiny.file())?), SessionOptions::default().context(300).chunk(96), 41, 4);
    }
}
