//! `weft pull`: fetches models from the hub.

use crate::exit::{note, usage};
use crate::hub::{self, Name, Pulled};
use crate::known::{self, Known};
use anyhow::{Result, anyhow};
use model::Size;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Fetch models from Hugging Face's hub
///
/// A model that is here already is compared with the hub, and a newer one is fetched. The files are
/// in the cache that all programs of the hub share. A download that was cut goes on where it ended,
/// and each file is checked against its SHA-256. All parts of a split file come along, and the
/// encoder of images, which this version does not use yet.
///
/// The variables HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE have their usual
/// meaning.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft pull --list                            list the known models
  weft pull qwen3-0.6b                        fetch a known model
  weft pull hf:Qwen/Qwen3-8B-GGUF:Q4_K_M      fetch a quantization of any repository
  weft pull hf:Qwen/Qwen3-8B-GGUF             Q4_K_M if there, else Q8_0, else another usual one
  weft pull qwen3-4b --json | jq -r '.[].files[0]'")]
pub struct Args {
    /// Models: a short name of `weft pull --list`, or hf:OWNER/REPO[:QUANT|/FILE]
    #[arg(value_name = "NAME", required_unless_present = "list")]
    names: Vec<String>,

    /// List the known models: size, memory with 4,096 tokens of context, licence
    #[arg(long, conflicts_with = "names")]
    list: bool,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if args.list {
        return list(args.json);
    }
    // All names are read before the first download.
    let names = args.names.iter().map(|text| name(text)).collect::<Result<Vec<Name>>>()?;
    let mut out = std::io::stdout();
    let mut all = vec![];
    for name in &names {
        let pulled = hub::pull(name)?;
        if let Some(projector) = &pulled.projector {
            let file = projector.file_name().unwrap_or_default().to_string_lossy();
            note(&format!("{file} came along: it encodes images, which this version of weft does not read yet"));
        }
        if args.json {
            all.push(as_json(&pulled));
        } else {
            let state = if pulled.fetched == 0 { "was here already" } else { "is here" };
            writeln!(out, "{} {state}, {}", told(&pulled.model.name), Size(pulled.bytes))?;
        }
    }
    if args.json {
        writeln!(out, "{}", Value::Array(all))?;
    }
    Ok(())
}

/// The shortest name that commands take.
pub fn told(name: &Name) -> String {
    let address = name.to_string();
    known::all().iter().find(|known| known.address == address).map_or(address, |known| known.name.clone())
}

/// The name of a model on the hub.
///
/// # Errors
/// The text names a file, a model of Ollama, or nothing.
pub fn name(text: &str) -> Result<Name> {
    if let Some(name) = hub_name(text) {
        return name.map_err(usage);
    }
    if Path::new(text).exists() {
        return Err(usage(format!("{text} is a file here; weft pull takes names of the hub, hf:OWNER/REPO[:QUANT]")));
    }
    let tagged = if text.contains(':') { text.to_string() } else { format!("{text}:latest") };
    if let Some(known) = known::of_ollama(&tagged) {
        return Err(anyhow!(
            "{text} is a name of Ollama; here it is `weft pull {}`, there `ollama pull {text}`",
            known.name
        ));
    }
    if text.contains('/') && matches!(Name::parse(&format!("hf:{text}")), Some(Ok(_))) {
        return Err(usage(format!("{text} is spelled hf:{text} as a model of the hub")));
    }
    let near = known::nearest(text, known::all().iter().map(|known| known.name.clone()));
    let hint = if near.is_empty() { String::new() } else { format!("; near names are {}", near.join(", ")) };
    Err(anyhow!("there is no known model {text}{hint}; `weft pull --list` shows all, others are hf:OWNER/REPO[:QUANT]"))
}

/// The name on the hub that a spelled-out or a short name means.
pub fn hub_name(text: &str) -> Option<Result<Name, String>> {
    Name::parse(text).or_else(|| Name::parse(&known::find(text)?.address))
}

fn as_json(pulled: &Pulled) -> Value {
    let Pulled { model, projector, bytes, fetched, commit } = pulled;
    json!({
        "model": told(&model.name), "address": model.name.to_string(), "files": model.parts, "projector": projector,
        "bytes": bytes, "fetched_bytes": fetched, "commit": commit,
    })
}

fn list(as_json: bool) -> Result<()> {
    let mut out = std::io::stdout();
    let is_here = |known: &Known| {
        Name::parse(&known.address).and_then(Result::ok).is_some_and(|name| hub::cached(&name).is_some())
    };
    if as_json {
        let row = |known: &Known| {
            json!({
                "name": known.name, "address": known.address, "bytes": known.bytes, "sha256": known.sha256,
                "memory_4096_bytes": known.memory_4096_bytes, "licence": known.licence, "here": is_here(known),
            })
        };
        writeln!(out, "{}", Value::Array(known::all().iter().map(row).collect()))?;
        return Ok(());
    }
    writeln!(out, "{:<14} {:>9} {:>9}  {:<10}  {:<4}  address", "name", "size", "memory", "licence", "here")?;
    for known in known::all() {
        let Known { name, address, bytes, memory_4096_bytes, licence, .. } = known;
        let (size, memory) = (Size(*bytes).to_string(), Size(*memory_4096_bytes).to_string());
        let here = if is_here(known) { "yes" } else { "-" };
        writeln!(out, "{name:<14} {size:>9} {memory:>9}  {licence:<10}  {here:<4}  {address}")?;
    }
    Ok(())
}
