//! The command line: commands, and the arguments that several of them share.

use crate::executor::Choice;
use crate::{bench, completions, devices, inspect, list, logits, man, perplexity, run, tokenize, tune};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use kernels::Precision;
use model::{KvType, SessionOptions};
use std::path::PathBuf;

/// Runs Gemma and Qwen language models from GGUF files, on any GPU and without one
#[derive(Debug, Parser)]
#[command(name = "weft", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Neither read nor write what is kept between runs: shaders as the driver compiled them, and what `weft devices` and `weft tune` measured
    ///
    /// It lies in $WEFT_CACHE_DIR, or in the folder weft of $XDG_CACHE_HOME, ~/.cache, ~/Library/Caches or %LOCALAPPDATA%.
    #[arg(long, global = true, display_order = 200)]
    pub no_cache: bool,

    /// Choose kernels as is usual for the class of the device, whatever `weft tune` measured
    #[arg(long, global = true, display_order = 201)]
    pub no_tune: bool,
}

const EXAMPLES: &str = "Examples:
  weft run -p 'Where does Wren live?'     ask the model that weft ships
  weft run qwen3-8b-Q4_K_M.gguf            chat with a model of your own
  weft run gemma4:e2b                      chat with one that Ollama has pulled
  weft list                                which models are on this machine
  weft inspect qwen3-8b-Q4_K_M.gguf        what is in a file, and what it needs
  weft devices                             which GPUs are here
  weft tune                                measure which kernels are fastest on this one

`weft help COMMAND` says more.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(run::Args),
    List(list::Args),
    Inspect(inspect::Args),
    Tokenize(tokenize::Args),
    Logits(logits::Args),
    Perplexity(perplexity::Args),
    Bench(bench::Args),
    Devices(devices::Args),
    Tune(tune::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Which file.
#[derive(Args, Clone, Debug)]
pub struct Source {
    /// GGUF file, of a split one any part; or a model of Ollama's, `[HOST/][USER/]NAME[:TAG]` [default: the small model that weft
    /// ships]
    #[arg(value_hint = ValueHint::FilePath)]
    pub model: Option<PathBuf>,

    /// Read the file instead of mapping it into memory
    #[arg(long, display_order = 100)]
    pub no_mmap: bool,

    /// Read all of the model first and look for damage: the digests that Ollama keeps, unknown types, NaN and infinite weights
    #[arg(long, display_order = 101)]
    pub verify: bool,
}

/// Where and how a session runs.
#[derive(Args, Clone, Debug)]
pub struct Place {
    /// auto (a GPU where that is faster), gpu, cpu, or part of an adapter's name as `weft devices` lists it
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: Choice,

    /// Type of the KV cache
    #[arg(long, value_enum, value_name = "TYPE", default_value = "f16")]
    pub kv: Kv,

    /// Precision of activations on a GPU [default: fast; of `weft logits` f32]
    ///
    /// `fast` rounds activations to 8 bits for products of few rows with quantized weights, and to
    /// f16 for products of many rows on a GPU with cooperative matrices. `f32` rounds nothing: it is
    /// slower and gives the numbers that other implementations give. The CPU always computes in f32.
    #[arg(long, value_enum, value_name = "PRECISION", hide_default_value = true)]
    pub precision: Option<Activations>,

    /// The same as --precision f32
    #[arg(long, conflicts_with = "precision")]
    pub precise: bool,
}

/// How long a session may get.
#[derive(Args, Clone, Debug)]
pub struct Context {
    /// Positions of the context at most [default: 8192, or what the model was made for, if less]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub ctx: Option<u32>,
}

impl Place {
    /// Options of a session here.
    pub fn session(&self, context: Option<u32>) -> SessionOptions {
        self.session_or(context, Precision::Fast)
    }

    /// Options of a session here, of this precision where none was asked for.
    pub fn session_or(&self, context: Option<u32>, precision: Precision) -> SessionOptions {
        let precision = match (self.precision, self.precise) {
            (Some(Activations::Fast), _) => Precision::Fast,
            (Some(Activations::F32), _) | (None, true) => Precision::F32,
            (None, false) => precision,
        };
        SessionOptions::default().context(context).kv(self.kv.into()).precision(precision)
    }
}

/// What `--precision` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Activations {
    Fast,
    F32,
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

/// A finite number within bounds, for `value_parser`.
pub fn number(text: &str, least: f32, most: f32) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "not a number".to_string())?;
    let bounds = if most == f32::MAX { format!("{least} or more") } else { format!("within {least} to {most}") };
    if (least..=most).contains(&value) { Ok(value) } else { Err(format!("must be {bounds}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_argument_is_described() {
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            assert!(command.get_after_help().is_some(), "{} has no examples", command.get_name());
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {}", command.get_name(), arg.get_id());
            }
        }
    }

    #[test]
    fn numbers_out_of_bounds_are_refused() {
        assert_eq!(number("0.5", 0.0, 1.0), Ok(0.5));
        for bad in ["nan", "inf", "-0.1", "1.5", "x"] {
            assert!(number(bad, 0.0, 1.0).is_err(), "{bad}");
        }
    }
}
