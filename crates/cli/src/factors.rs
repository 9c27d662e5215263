//! The flags about low-rank factors that several commands share.

use crate::lora;
use anyhow::Result;
use clap::{Args, ValueHint};
use model::{AdapterFile, Checked};
use std::path::PathBuf;
use train::{Lora, Targets, defaults};

/// Which linear layers get low-rank factors, and of which form.
#[derive(Args, Clone, Debug)]
pub struct Factors {
    /// Adapter to go on from, in place of new factors: PEFT's folder, or a GGUF file
    #[arg(long, value_name = "ADAPTER", value_hint = ValueHint::AnyPath, conflicts_with_all = ["targets", "rank", "alpha", "rslora"])]
    pub init: Option<PathBuf>,

    /// What gets new factors: all (linear layers), attn, mlp, per_layer, laurel, altup, a list of
    /// q,k,v,o,gate,up,down,embed,head, or patterns over tensor names, such as 'blk.3.*'
    #[arg(long, value_name = "TARGETS", default_value = "all")]
    pub targets: Targets,

    /// Rank of new factors
    #[arg(long, value_name = "N", default_value_t = defaults::RANK, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub rank: u32,

    /// Alpha of new factors: their scale is alpha / rank
    #[arg(long, value_name = "X", default_value_t = defaults::ALPHA, value_parser = |text: &str| crate::args::number(text, 0.0, f32::MAX))]
    pub alpha: f32,

    /// Scale new factors by alpha / sqrt(rank)
    #[arg(long)]
    pub rslora: bool,
}

impl Factors {
    /// The adapter of a model that is trained: the given one, or a new one whose values `seed`
    /// decides.
    pub fn lora(&self, model: &Checked, seed: u64) -> Result<Lora> {
        let lora = Lora::new(self.rank).targets(self.targets.clone()).alpha(self.alpha).rslora(self.rslora).seed(seed);
        let Some(path) = &self.init else { return Ok(lora) };
        let (factors, said) = model.factors_of(&AdapterFile::open(path)?)?;
        lora::say(path, said.as_ref());
        Ok(lora.init(factors))
    }
}
