//! The arguments of `golden`.

use anyhow::{Context as _, Result};
use kernels::Precision;
use std::path::{Path, PathBuf};

/// Compare the results of small models with the results of other implementations
#[derive(clap::Args)]
pub struct Args {
    /// The folder of fixtures; the fixtures of this repository, tests/goldens, also run
    #[arg(long, required_unless_present = "model")]
    pub fixtures: Option<PathBuf>,
    /// With --nodes, instead of fixtures: this GGUF file, with random tokens. It needs no reference
    #[arg(long, value_name = "FILE", requires = "nodes", conflicts_with = "fixtures")]
    pub model: Option<PathBuf>,
    /// Only folders and files whose path contains this
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    pub only: String,
    /// Only this executor: cpu or gpu
    #[arg(long)]
    pub executor: Option<String>,
    /// f32, or fast: the rounded activations that `weft run` has on a GPU, and gradients with
    /// operands in f16 where it has cooperative matrices. The CPU is f32 always
    #[arg(long, value_enum, default_value = "f32")]
    pub precision: Activations,
    /// Train the models of the fixtures for ten steps on a software driver, too, and with --browser
    /// all models. Each model takes minutes there. Other executors train all models without this
    /// flag
    #[arg(long)]
    pub trajectories: bool,
    /// Instead of logits, compare every operation on the GPU with the host, from the inputs that
    /// the GPU read: prompts in several chunks, steps at several depths, and batches
    #[arg(long)]
    pub nodes: bool,
    /// Compute in a browser instead, with the package of `cargo xtask web`: the logits of one file
    /// of each folder on both executors, and ten steps of training on the CPU
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, default_missing_value = "chromium", require_equals = true)]
    #[arg(conflicts_with_all = ["nodes", "model"])]
    pub browser: Option<PathBuf>,
    /// With --browser, compute every file
    #[arg(long, requires = "browser")]
    pub all: bool,
    /// With --nodes, the longest prompt and the deepest step
    #[arg(long, value_name = "N", default_value_t = 1920)]
    pub longest: usize,
}

/// What `--precision` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Activations {
    Fast,
    F32,
}

impl Args {
    /// The precision of activations on a GPU.
    pub fn precision(&self) -> Precision {
        match self.precision {
            Activations::Fast => Precision::Fast,
            Activations::F32 => Precision::F32,
        }
    }

    /// The folder of fixtures.
    pub fn fixtures(&self) -> Result<&Path> {
        self.fixtures.as_deref().context("--fixtures DIR names the folder of fixtures")
    }
}
