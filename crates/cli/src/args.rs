//! The arguments that several commands share.

use crate::executor::Choice;
use clap::{Args, ValueEnum, ValueHint};
use kernels::Precision;
use model::{KvType, SessionOptions};
use std::path::PathBuf;

/// The heading of the options that are about the machine and not about the work.
pub const MACHINE: &str = "Device, memory and cache";

/// Arguments that name the model file and say how to read it.
#[derive(Args, Clone, Debug)]
pub struct Source {
    /// GGUF file (any part of a split file), a known model such as qwen3-8b, a model of the hub
    /// (`hf:OWNER/REPO[:QUANT|/FILE]`), or the name of a model in Ollama,
    /// `[HOST/][USER/]NAME[:TAG]` [default: the small model that weft ships]
    #[arg(value_hint = ValueHint::FilePath)]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub mapping: Mapping,

    /// Read the whole model first and check it for damage: the digests of Ollama and of the hub,
    /// unknown types, NaN and infinite weights
    #[arg(long, help_heading = MACHINE)]
    pub verify: bool,
}

/// Arguments that say whether the file is read or mapped.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Mapping {
    /// Map the file into memory instead of reading it. The CPU then holds no copy of the weights.
    /// If another program cuts the file short meanwhile, weft is killed
    #[arg(long, help_heading = MACHINE)]
    mmap: bool,

    /// Read the file; this is the default, and wins over --mmap
    #[arg(long, help_heading = MACHINE)]
    no_mmap: bool,
}

impl Mapping {
    /// Whether to map the file.
    pub fn maps(self) -> bool {
        self.mmap && !self.no_mmap
    }
}

/// Arguments that choose the device, the type of the KV cache and the precision.
#[derive(Args, Clone, Debug)]
pub struct Place {
    /// auto (a GPU if it is faster, else the CPU), gpu, cpu, or part of an adapter's name as
    /// `weft devices` lists it
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = MACHINE)]
    pub device: Choice,

    /// Type of the KV cache [default: f16; of `weft logits` f32]
    #[arg(long, value_enum, value_name = "TYPE", hide_default_value = true, help_heading = MACHINE)]
    kv: Option<Kv>,

    /// Precision of activations on a GPU [default: fast; of `weft logits` f32]
    ///
    /// `fast` rounds activations to 8 bits for products of few rows with quantized weights. For
    /// products of many rows it rounds to f16 on a GPU with cooperative matrices, and to 8 bits on
    /// other GPUs. A mixture of experts also rounds to 8 bits where many sequences generate at
    /// once. `f32` rounds nothing: it is slower and gives the numbers that other implementations
    /// give. The CPU always computes in f32.
    #[arg(long, value_enum, value_name = "PRECISION", hide_default_value = true, help_heading = MACHINE)]
    pub precision: Option<Activations>,

    /// The same as --precision f32
    #[arg(long, conflicts_with = "precision", help_heading = MACHINE)]
    pub precise: bool,
}

/// The context length of a session.
#[derive(Args, Clone, Debug)]
pub struct Context {
    /// Context length: the largest number of tokens in the context [default: 8192, or the model's
    /// own context length if that is less]
    #[arg(short = 'c', long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub ctx: Option<u32>,
}

/// The number of threads of the CPU.
#[derive(Args, Clone, Copy, Debug)]
pub struct Threads {
    /// Threads of the CPU [default: one for each core]
    #[arg(short = 't', long, help_heading = MACHINE, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
}

impl Threads {
    /// Makes the threads, before any work begins.
    pub fn apply(self) -> anyhow::Result<()> {
        let Some(threads) = self.threads else { return Ok(()) };
        Ok(rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build_global()?)
    }
}

impl Place {
    /// The session options that these arguments give.
    pub fn session(&self, context: Option<u32>) -> SessionOptions {
        self.session_or(context, Precision::Fast, self.kv())
    }

    /// The type of the KV cache.
    pub fn kv(&self) -> Kv {
        self.kv.unwrap_or(Kv::F16)
    }

    /// The options of a session on this executor. `precision` and `kv` apply if no flag names them.
    pub fn session_or(&self, context: Option<u32>, precision: Precision, kv: Kv) -> SessionOptions {
        let precision = match (self.precision, self.precise) {
            (Some(activations), _) => activations.into(),
            (None, true) => Precision::F32,
            (None, false) => precision,
        };
        SessionOptions::default().context(context).kv(self.kv.unwrap_or(kv).into()).precision(precision)
    }
}

/// What `--precision` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Activations {
    Fast,
    F32,
}

impl From<Activations> for Precision {
    fn from(activations: Activations) -> Self {
        match activations {
            Activations::Fast => Self::Fast,
            Activations::F32 => Self::F32,
        }
    }
}

impl Activations {
    /// The name that `--precision` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::F32 => "f32",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kv {
    F16,
    F32,
    #[value(name = "q8_0")]
    Q8_0,
}

impl From<Kv> for KvType {
    fn from(kv: Kv) -> Self {
        match kv {
            Kv::F16 => Self::F16,
            Kv::F32 => Self::F32,
            Kv::Q8_0 => Self::Q8_0,
        }
    }
}

impl Kv {
    /// The name that `--kv` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::Q8_0 => "q8_0",
        }
    }
}

/// Parses a finite number within bounds, for `value_parser`.
pub fn number(text: &str, least: f32, most: f32) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "not a number".to_string())?;
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("must be {}", range(least.into(), most.into())))
    }
}

/// The numbers from `least` to `most` in words. [`f32::MIN_POSITIVE`] is "above 0".
pub fn range(least: f64, most: f64) -> String {
    let (above, bounded) = (least == f64::from(f32::MIN_POSITIVE), most < f64::from(f32::MAX));
    match (above, bounded) {
        (true, true) => format!("above 0 and at most {most}"),
        (true, false) => "above 0".to_string(),
        (false, true) => format!("from {least} to {most}"),
        (false, false) => format!("{least} or more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_bounds_are_refused() {
        assert_eq!(number("0.5", 0.0, 1.0), Ok(0.5));
        for bad in ["nan", "inf", "-0.1", "1.5", "x"] {
            assert!(number(bad, 0.0, 1.0).is_err(), "{bad}");
        }
        let refused = |least: f32, most: f32| number("-2", least, most).unwrap_err();
        assert_eq!(refused(f32::MIN_POSITIVE, 1.0), "must be above 0 and at most 1");
        assert_eq!(refused(f32::MIN_POSITIVE, f32::MAX), "must be above 0");
        assert_eq!(refused(0.0, 1.0), "must be from 0 to 1");
        assert_eq!(refused(0.0, f32::MAX), "must be 0 or more");
    }
}
