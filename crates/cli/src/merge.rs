//! `weft merge`: a model file with adapters added to its weights.

use crate::args::{Mapping, Source};
use crate::exit::{Interrupted, note};
use crate::interrupt;
use crate::lora::{self, Adapters};
use crate::output;
use crate::progress::Bar;
use crate::text::counted;
use anyhow::Result;
use clap::ValueHint;
use gguf::GgmlType;
use gguf::quants::WRITTEN;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use train::{Fallback, Merged, Writing};

/// Write a model with adapters added to its weights
///
/// Every weight that an adapter changes becomes W + scale B A, where SCALE multiplies the adapter's
/// own scale. All other tensors, the metadata and the tokenizer stay as they are in the file. The
/// need for memory does not grow with the model.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft merge model.gguf adapter/ -o merged.gguf                    keep the type of each tensor
  weft merge model.gguf adapter.gguf:0.5 -o merged.gguf            add half of an adapter
  weft merge model.gguf french/ terse.gguf -o merged.gguf          add two adapters
  weft merge model.gguf adapter/ --type F32 -o merged.gguf         round the new weights to f32 only
  weft merge model.gguf adapter/ -o merged.gguf --json | jq .bytes")]
pub struct Args {
    /// GGUF file (any part of a split file), or the name of a known model, of one of the hub or of
    /// one in Ollama
    #[arg(value_name = "BASE", value_hint = ValueHint::FilePath)]
    base: PathBuf,

    /// LoRA adapters, each multiplied by its SCALE [default: 1]: a folder or safetensors file of
    /// PEFT, or a GGUF file of llama.cpp
    #[arg(value_name = "ADAPTER[:SCALE]", value_hint = ValueHint::AnyPath, required = true)]
    adapters: Vec<lora::Choice>,

    /// File to write
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Type of the tensors that change: SAME as before, or F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1,
    /// Q8_0, Q4_K, Q5_K, Q6_K. Where a row is no whole number of its blocks, the type is the one
    /// that llama-quantize takes: Q5_0 for Q4_K, Q5_1 for Q5_K, Q8_0 for Q6_K, else F16
    #[arg(long = "type", value_name = "TYPE", default_value = "SAME")]
    ty: Type,

    #[command(flatten)]
    mapping: Mapping,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--type` takes: a type of ggml, or none for that of each tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type(Option<GgmlType>);

impl FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("SAME") {
            return Ok(Self(None));
        }
        written(text).map(|ty| Self(Some(ty))).map_err(|error| format!("{error}, or SAME"))
    }
}

/// A type that can be written.
pub fn written(text: &str) -> Result<GgmlType, String> {
    let names = WRITTEN.map(|ty| ty.name()).join(", ");
    GgmlType::from_name(text).filter(|ty| WRITTEN.contains(ty)).ok_or_else(|| format!("must be one of {names}"))
}

impl Type {
    fn name(self) -> &'static str {
        self.0.map_or("SAME", GgmlType::name)
    }
}

pub fn run(args: &Args) -> Result<()> {
    output::writable(&args.output)?;
    let source = Source { model: Some(args.base.clone()), mapping: args.mapping, verify: false };
    let file = source.model_file()?;
    source.say_notes_of_base(&file)?;
    let adapters = Adapters { choices: args.adapters.clone() }.open()?;
    let cancel = Arc::new(AtomicBool::new(false));
    let guard = interrupt::stops(Arc::clone(&cancel));
    let bar = Bar::bytes(format!("writing {}", args.output.display()));
    let progress = |progress| bar.show(progress);
    let watch = Writing { cancel: Some(&cancel), progress: Some(&progress) };
    let merged = train::merge(&file, &adapters, args.ty.0, &args.output, watch);
    drop((guard, bar));
    match merged {
        Ok(merged) => report(args, merged),
        Err(train::Error::Kernels(kernels::Error::Cancelled)) => Err(Interrupted.into()),
        Err(train::Error::Model(error)) => source.named(Err(error)),
        Err(error) => Err(error.into()),
    }
}

/// Prints a note for each type that was asked for and does not fit the rows of some tensors.
pub fn say_fallbacks(fallbacks: &[Fallback]) {
    let mut groups: BTreeMap<(u64, GgmlType, GgmlType), Vec<&str>> = BTreeMap::new();
    for Fallback { tensor, cols, asked, written } in fallbacks {
        groups.entry((*cols, *asked, *written)).or_default().push(tensor);
    }
    for ((cols, asked, written), tensors) in groups {
        let more = if tensors.len() > 1 { format!(" and {} more", tensors.len() - 1) } else { String::new() };
        let block = asked.block_size();
        note(&format!(
            "{}{more}: rows of {cols} elements are no multiple of {block}, so {written} replaces {asked}",
            tensors[0]
        ));
    }
}

fn report(args: &Args, Merged { tensors, bytes, notes, fallbacks }: Merged) -> Result<()> {
    say_fallbacks(&fallbacks);
    args.adapters.iter().zip(&notes).for_each(|(choice, said)| lora::say(&choice.path, said.as_ref()));
    let (mut out, name) = (std::io::stdout().lock(), args.output.display().to_string());
    if args.json {
        let adapter =
            |choice: &lora::Choice| json!({ "file": choice.path.display().to_string(), "scale": choice.scale });
        let adapters: Vec<_> = args.adapters.iter().map(adapter).collect();
        let fallbacks: BTreeMap<_, _> = fallbacks.iter().map(|of| (&*of.tensor, of.written.name())).collect();
        let object = json!({
            "file": name, "bytes": bytes, "tensors": tensors, "type": args.ty.name(), "fallbacks": fallbacks, "adapters": adapters,
        });
        writeln!(out, "{object}")?;
    } else {
        writeln!(out, "{name}: {:.1} MB, {} changed", bytes as f64 / 1e6, counted(tensors as u64, "tensor"))?;
    }
    Ok(())
}
