//! `weft list`: the models on this machine.

mod found;
mod quantization;

use crate::args::{Context, Kv};
use crate::executor::{Choice, limits};
use crate::exit::one_line;
use crate::progress::Bar;
use anyhow::{Result, anyhow};
use clap::ValueHint;
use found::{Fit, Model};
use kernels::Executor;
use kernels::{Device, Select};
use model::{SessionOptions, Size};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// List the models on this machine, and whether they fit this device
///
/// The list has the model inside the binary, the models that Ollama has pulled, the models in the
/// cache of Hugging Face's hub, and the GGUF files of FOLDER and its subfolders. Encoders of images
/// are no models and left out. At a terminal long lines are cut.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft list
  weft list ~/models                     also list the files of a folder
  weft list --ctx 32768 --device gpu     check whether they fit with a long context
  weft list --json | jq -r '.[] | select(.fits).model'")]
pub struct Args {
    /// Folder of GGUF files
    #[arg(env = "WEFT_MODELS", value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,

    /// Device that the models should fit: auto (the best GPU, else the CPU), gpu, cpu, or part of
    /// an adapter's name
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Choice,

    #[command(flatten)]
    context: Context,

    /// Type of the KV cache, for the computed memory
    #[arg(long, value_enum, value_name = "TYPE", default_value = "f16")]
    kv: Kv,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if let Some(folder) = args.folder.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(anyhow!("{}: no such folder", folder.display()));
    }
    let executor = executor(&args.device)?;
    let options = SessionOptions::default().context(args.context.ctx).kv(args.kv.into());
    let bar = Bar::count("looking at models");
    let places = found::places(args.folder.as_deref());
    let mut models = vec![];
    for (n, place) in places.iter().enumerate() {
        bar.set(n as u64, places.len() as u64);
        models.push(Model::of(place, &executor, &options));
    }
    drop(bar);
    models.retain(Model::is_model);
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{}", Value::Array(models.iter().map(|model| as_json(model, &executor)).collect()))?;
        return Ok(());
    }
    let width = out.is_terminal().then(terminal_size::terminal_size).flatten().map(|(width, _)| width.0.into());
    print(&mut out, &models, &executor, width)
}

/// `auto` is the best GPU that is not a software adapter. The cost of a model does not matter here.
fn executor(choice: &Choice) -> Result<Executor> {
    match choice {
        Choice::Auto => Ok(Executor::best()),
        Choice::Cpu => Ok(Executor::Cpu),
        Choice::Gpu => Ok(Executor::Gpu(Device::open(&Select::Best, limits())?)),
        Choice::Name(name) => Ok(Executor::Gpu(Device::open(&Select::Name(name.clone()), limits())?)),
    }
}

/// Prints the table; with a `limit`, in lines of at most so many characters.
fn print(out: &mut impl Write, models: &[Model], executor: &Executor, limit: Option<usize>) -> Result<()> {
    let head = ["model", "from", "size", "architecture", "types"].map(str::to_string);
    let row = |model: &Model| {
        [
            model.name.clone(),
            model.source.to_string(),
            Size(model.bytes).to_string(),
            text(&model.architecture),
            text(&model.quantization),
        ]
    };
    let rows: Vec<[String; 5]> = models.iter().map(row).map(|row| row.map(|cell| one_line(&cell))).collect();
    let width = |n: usize| rows.iter().chain([&head]).map(|row| row[n].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let fits = format!("fits {}", executor.name());
    for (row, fit) in
        [(&head, fits)].into_iter().chain(rows.iter().zip(models).map(|(row, model)| (row, fit(&model.fit))))
    {
        let [name, source, size, architecture, types] = row;
        let [a, b, c, d, e] = widths;
        let line = format!("{name:<a$}  {source:<b$}  {size:>c$}  {architecture:<d$}  {types:<e$}  {}", one_line(&fit));
        writeln!(out, "{}", cut(&line, limit))?;
    }
    Ok(())
}

/// The line, or as much of its beginning as the limit allows.
fn cut(line: &str, limit: Option<usize>) -> String {
    match limit {
        Some(limit) if line.chars().count() > limit => {
            line.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line.to_string(),
    }
}

fn text(value: &Option<String>) -> String {
    value.clone().unwrap_or_else(|| "-".to_string())
}

fn fit(fit: &Fit) -> String {
    match fit {
        Fit::Yes { needed } => format!("yes, in {}", Size(*needed)),
        Fit::No { needed, available } => format!("no, needs {}, free {}", Size(*needed), Size(*available)),
        Fit::Unknown { needed } => format!("needs {}; free memory is unknown", Size(*needed)),
        Fit::CannotRun(reason) => format!("cannot run: {reason}"),
    }
}

fn as_json(model: &Model, executor: &Executor) -> Value {
    let (fits, needed, reason) = match &model.fit {
        Fit::Yes { needed } => (Some(true), Some(needed), None),
        Fit::No { needed, .. } => (Some(false), Some(needed), None),
        Fit::Unknown { needed } => (None, Some(needed), None),
        Fit::CannotRun(reason) => (Some(false), None, Some(reason)),
    };
    json!({
        "model": model.name, "from": model.source, "path": model.path, "bytes": model.bytes, "architecture": model.architecture,
        "types": model.quantization, "device": executor.name(), "fits": fits, "needed_bytes": needed, "cannot_run": reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal_and_are_whole_in_a_pipe() {
        let model = Model {
            name: "qwen3-8b".to_string(),
            source: "hub",
            path: None,
            bytes: 5_027_783_488,
            architecture: Some("qwen3".to_string()),
            quantization: None,
            fit: Fit::CannotRun("é".repeat(200)),
        };
        let lines = |limit| {
            let mut out = vec![];
            print(&mut out, std::slice::from_ref(&model), &Executor::Cpu, limit).unwrap();
            String::from_utf8(out).unwrap()
        };
        let longest = |text: String| text.lines().map(|line| line.chars().count()).max().unwrap();
        assert_eq!(longest(lines(Some(80))), 80);
        assert!(lines(Some(80)).contains("cannot run: é") && longest(lines(None)) > 200);
    }
}
