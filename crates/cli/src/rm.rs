//! `weft rm`: removes models from the hub's cache.

use crate::exit::usage;
use crate::hub::{self, Removed};
use crate::pull;
use anyhow::{Result, anyhow};
use model::Size;
use model::ollama::{Name, Stores};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Remove models from the cache of Hugging Face's hub
///
/// The files of the named model are deleted, without a question. Nothing outside the cache is
/// deleted, and no file that another model there uses.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft rm qwen3-0.6b
  weft rm hf:Qwen/Qwen3-8B-GGUF:Q4_K_M hf:Qwen/Qwen3-8B-GGUF:Q8_0
  weft rm qwen3-0.6b --json | jq '.[].freed_bytes'")]
pub struct Args {
    /// Models as `weft list` names them
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let names = args.names.iter().map(|text| name(text)).collect::<Result<Vec<_>>>()?;
    let mut out = std::io::stdout();
    let mut all = vec![];
    for (name, text) in names.iter().zip(&args.names) {
        let Removed { name, files, bytes } = hub::remove(name)?;
        if args.json {
            all.push(json!({ "model": text, "address": name.to_string(), "files": files, "freed_bytes": bytes }));
        } else {
            let plural = if files == 1 { "" } else { "s" };
            writeln!(out, "{text}: {files} file{plural} removed, {} freed", Size(bytes))?;
        }
    }
    if args.json {
        writeln!(out, "{}", Value::Array(all))?;
    }
    Ok(())
}

/// The name of a model on the hub, or the way to remove something else.
fn name(text: &str) -> Result<hub::Name> {
    if Path::new(text).exists() {
        return Err(usage(format!("{text} is a file: delete it as any file; weft rm takes names of the hub")));
    }
    if let Some(name) = pull::hub_name(text) {
        return name.map_err(usage);
    }
    let ollama = text.parse::<Name>().ok().filter(|name| Stores::from_env().find(name).is_ok());
    match ollama {
        Some(name) => Err(usage(format!("{text} is a model of Ollama: `ollama rm {name}` removes it"))),
        None => Err(anyhow!("there is no model {text}; `weft list` shows the models on this machine")),
    }
}
