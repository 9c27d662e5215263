//! The flags about the computation of gradients that several commands share.

use crate::args::{Activations, MACHINE};
use crate::executor::Choice;
use clap::{Args, ValueEnum};
use kernels::{Phase, Progress};
use std::path::PathBuf;
use std::str::FromStr;
use train::{Capture, Checkpointing, GradientOptions};

/// How gradients are computed, and on which device.
#[derive(Args, Clone, Debug)]
pub struct Steps {
    /// Most tokens that are computed together, in whole examples [default: 1024, or the longest
    /// example; fewer if a batch has fewer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub micro: Option<u32>,

    /// Values of the forward pass that are kept: all (none), those between layers (layer), or all
    /// if they fit into memory (auto). Gradients have the same bits
    #[arg(long, value_enum, value_name = "MODE", default_value = "auto")]
    checkpointing: Kept,

    /// Write values of the model too: NAMES are a list such as `layer_out,grad.attn_out`, where
    /// `grad.` is the derivative of the loss
    #[arg(long, value_name = "NAMES:FILE")]
    pub capture: Option<Captures>,

    /// auto (a GPU if it is faster, else the CPU), gpu, cpu, or part of an adapter's name as
    /// `weft devices` lists it
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = MACHINE)]
    pub device: Choice,

    /// f32, or fast: products read f16 on devices with cooperative matrices (tensor cores)
    #[arg(long, value_enum, value_name = "PRECISION", default_value = "f32", help_heading = MACHINE)]
    precision: Activations,
}

impl Steps {
    /// The options for steps of this many rows.
    pub fn options(&self, rows: u32) -> GradientOptions {
        GradientOptions::default().rows(rows).precision(self.precision.into()).checkpointing(match self.checkpointing {
            Kept::None => Checkpointing::None,
            Kept::Layer => Checkpointing::Layer,
            Kept::Auto => Checkpointing::Auto,
        })
    }

    /// The names of [`Steps::capture`].
    pub fn captures(&self) -> Vec<Capture> {
        self.capture.as_ref().map_or(vec![], |capture| capture.names.clone())
    }
}

/// What `--checkpointing` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kept {
    None,
    Layer,
    Auto,
}

/// What `--capture` takes.
#[derive(Clone, Debug)]
pub struct Captures {
    pub names: Vec<Capture>,
    pub file: PathBuf,
}

impl FromStr for Captures {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((names, file)) if !names.is_empty() && !file.is_empty() => {
                let names = names.split(',').map(|name| name.trim().parse()).collect::<Result<_, _>>();
                Ok(Self { names: names.unwrap_or_else(|never| match never {}), file: PathBuf::from(file) })
            }
            _ => Err("must be NAMES:FILE, for example layer_out:layers.safetensors".to_string()),
        }
    }
}

/// The progress of a step, forward and backward.
pub fn both_ways(phase: Phase, Progress { done, total }: Progress) -> Progress {
    let before = if phase == Phase::Backward { total } else { 0 };
    Progress { done: before + done, total: 2 * total }
}
