//! `weft inspect`: the contents of a file, the memory it needs, its plans, and a check for damage.

mod outlook;
mod report;
pub mod verify;

use crate::args::{Context, Kv, Source};
use crate::executor::Choice;
use crate::lora::Adapters;
use crate::text;
use anyhow::{Result, anyhow};
use outlook::Outlook;
pub use report::{millions, types};
use serde_json::json;
use std::io::Write;

/// Show the contents of a GGUF file and the memory it needs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft inspect qwen3-8b
  weft inspect qwen3-8b --ctx 32768 --kv q8_0 --device gpu        show memory on the GPU
  weft inspect qwen3-8b --lora french/                            show memory with an adapter
  weft inspect qwen3-8b --plan                                    show every dispatch of a step
  weft inspect qwen3-8b --verify                                  read and check every weight
  weft inspect qwen3-8b --json | jq .memory")]
pub struct Args {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    context: Context,

    /// Type of the KV cache, for the computed memory
    #[arg(long, value_enum, value_name = "TYPE", default_value = "f16")]
    kv: Kv,

    /// Device for which memory and plans are computed: auto, gpu, cpu, or part of an adapter's name
    /// [default: cpu; with --plan, auto]
    #[arg(long, value_name = "DEVICE", help_heading = crate::args::MACHINE)]
    device: Option<Choice>,

    #[command(flatten)]
    adapters: Adapters,

    /// Print the compiled plans of a decode step and of a prefill step
    #[arg(long)]
    plan: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let file = args.source.gguf()?;
    let outlook = Outlook::new(args)?;
    let mut out = std::io::stdout();
    let mut object = json!({});
    let named: Vec<&str> =
        file.metadata().filter_map(|(key, _)| key.strip_prefix("tokenizer.chat_template.")).collect();
    if args.json {
        object = report::json(&args.source.name(), &file);
        object["chat_templates"] = json!(named);
        object["memory"] = outlook.memory_json();
        object["chat_template_error"] = json!(outlook.template());
        object["notes"] = json!(outlook.notes());
    } else {
        report::print(&mut out, &args.source.name(), &file)?;
        writeln!(out, "\n{}", outlook.memory())?;
        if let Some(reason) = outlook.template() {
            writeln!(out, "chat template: {}", text::printable(reason))?;
        }
        if !named.is_empty() {
            writeln!(out, "other chat templates: {}", text::printable(&named.join(", ")))?;
        }
        for note in outlook.notes() {
            writeln!(out, "note: {}", text::printable(note))?;
        }
    }
    if args.plan {
        let plans = outlook.plans()?;
        if args.json {
            object["plan"] = json!({ "for": plans.target, "decode": plans.decode, "prefill": plans.prefill });
        } else {
            writeln!(out, "\ndecode step, for {}\n{}\n\nprefill step\n{}", plans.target, plans.decode, plans.prefill)?;
        }
    }
    let damage = if args.source.verify { Some(args.source.damage(&file)?) } else { None };
    if let Some(damage) = &damage {
        if args.json {
            object["damage"] = json!(damage);
        } else if damage.is_empty() {
            writeln!(out, "\nverified: all {} tensors can be read and hold finite values", file.tensors().len())?;
        } else {
            writeln!(out, "\ndamaged\n  {}", damage.join("\n  "))?;
        }
    }
    if args.json {
        writeln!(out, "{object}")?;
    }
    damage.map_or(Ok(()), |damage| verdict(&args.source.name(), &damage, &outlook))
}

/// The error of `--verify`, if there is one: damage first, else the reason why the file cannot run.
fn verdict(name: &str, damage: &[String], outlook: &Outlook) -> Result<()> {
    match (damage, outlook.unsupported()) {
        ([], None) => Ok(()),
        ([], Some(reason)) if reason.starts_with(name) => Err(anyhow!("{reason}")),
        ([], Some(reason)) => Err(anyhow!("{name}: {reason}")),
        ([one], _) => Err(anyhow!("{name}: {one}")),
        ([first, rest @ ..], _) => Err(anyhow!("{name}: {first}; {} more tensors are damaged", rest.len())),
    }
}
