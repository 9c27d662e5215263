//! `weft tune`: which kernels are fastest on the device at hand.

use crate::args::Source;
use crate::cache;
use crate::executor::Choice;
use crate::exit::{Interrupted, note, usage};
use crate::interrupt;
use crate::progress::Bar;
use anyhow::{Context, Result, anyhow};
use clap::ValueHint;
use kernels::caps::table::THRESHOLDS;
use kernels::native::tune::{Shapes, Trial, Try, Tuned, tune};
use kernels::{Class, Device, Limits, Select};
use kernels::{Executor, Table};
use model::SessionOptions;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Measure where one kernel takes over from another on this device, and choose by that from then on
///
/// Without it, Weft chooses by numbers that were measured on other devices of the class. Every choice is between kernels that are correct: what
/// changes is time, and within what --precise rules out, rounding. A number is changed only for a gain of more than 3%; where the time does not
/// suffice, or after Ctrl-C, what was not measured stays as it was. The table is kept per adapter, driver and version of Weft.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft tune                                the best GPU, at the shapes of common models
  weft tune qwen3-8b.gguf --seconds 30     at those of a model of your own
  weft tune --device 'RTX 4090' --json
  weft tune --forget                       choose as is usual for the class again
  weft bench qwen3-8b.gguf --no-tune       what it was like before")]
pub struct Args {
    /// Model whose shapes are measured: a GGUF file, or a model of Ollama's [default: shapes of common models]
    #[arg(value_hint = ValueHint::FilePath)]
    model: Option<PathBuf>,

    /// Seconds that it may take; one comparison may run over
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// auto (the best GPU), gpu, or part of an adapter's name as `weft devices` lists it
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Choice,

    /// Measure nothing, and forget what was measured of this device
    #[arg(long, conflicts_with_all = ["model", "seconds"])]
    forget: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let device = open(&args.device)?;
    let path = cache::table_file(&device).ok_or_else(|| usage("with no cache folder there is nowhere to keep what is measured"))?;
    if args.forget {
        return forget(&device, &path, args.json);
    }
    let shapes = args.model.as_deref().map(shapes).transpose()?;
    let device = cache::attach(&device);
    if device.adapter().class == Class::Software {
        note(&format!("software adapter {}; this is not a GPU", device.adapter().name));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let guard = interrupt::stops(Arc::clone(&stop));
    let tuned = {
        let name = &device.adapter().name;
        let bar = Bar::count(format!("tuning {name}"));
        tune(&device, shapes, Duration::from_secs(args.seconds), &mut |threshold, done, of| {
            bar.say(format!("tuning {name}: {threshold}"));
            bar.set(done as u64, of as u64);
            !stop.load(Ordering::Relaxed)
        })?
    };
    let any = tuned.trials.iter().any(|trial| !trial.tries.is_empty());
    if any {
        cache::try_write(&path, &tuned.table.to_bytes(&device.table_key())).with_context(|| format!("cannot keep {}", path.display()))?;
    }
    report(&device, &tuned, any.then_some(path.as_path()), args)?;
    if guard.raised() { Err(Interrupted.into()) } else { Ok(()) }
}

fn open(choice: &Choice) -> Result<Device> {
    let select = match choice {
        Choice::Cpu => return Err(usage("the CPU has one kernel for each operation: there is nothing to choose")),
        Choice::Auto | Choice::Gpu => Select::Best,
        Choice::Name(name) => Select::Name(name.clone()),
    };
    Ok(Device::open(&select, Limits::from_env())?)
}

/// The widths of a model.
fn shapes(path: &Path) -> Result<Shapes> {
    let source = Source { model: Some(path.to_path_buf()), no_mmap: false, verify: false };
    let checked = source.named(source.model_file()?.check(&Executor::Cpu))?;
    let shapes = Shapes::of(&checked.recording(&SessionOptions::default(), 1));
    shapes.ok_or_else(|| anyhow!("{}: it has no layers whose shapes could be measured", source.name()))
}

fn forget(device: &Device, path: &Path, as_json: bool) -> Result<()> {
    let forgotten = match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        removed => removed.map(|()| true).with_context(|| format!("cannot remove {}", path.display()))?,
    };
    let (mut out, name) = (std::io::stdout(), &device.adapter().name);
    match (as_json, forgotten) {
        (true, _) => writeln!(out, "{}", json!({ "device": name, "forgotten": forgotten }))?,
        (false, true) => writeln!(out, "what was measured of {name} is forgotten")?,
        (false, false) => writeln!(out, "nothing was measured of {name}")?,
    }
    Ok(())
}

fn report(device: &Device, tuned: &Tuned, kept: Option<&Path>, args: &Args) -> Result<()> {
    let mut out = std::io::stdout();
    if args.json {
        let trials: Vec<Value> = tuned.trials.iter().map(trial_json).collect();
        let (name, whole) = (&device.adapter().name, tuned.whole());
        writeln!(out, "{}", json!({ "device": name, "table": numbers(tuned.table), "whole": whole, "file": kept, "measured": trials }))?;
        return Ok(());
    }
    writeln!(out, "{:<18} {:>6} {:>6}  gain beside the next best, at", "", "was", "now")?;
    for Trial { threshold, was, chosen, tries, whole } in &tuned.trials {
        let gain = |tried: &Try| format!("{} {:+.0}%", tried.at, 100.0 * tried.gain());
        let gains: Vec<String> = tries.iter().map(gain).chain((!whole).then(|| "no time for more".to_string())).collect();
        let gains = if gains.is_empty() { "no choice here".to_string() } else { gains.join(", ") };
        writeln!(out, "{:<18} {was:>6} {chosen:>6}  {gains}", threshold.name)?;
    }
    if !tuned.whole() {
        note("the time did not suffice for everything: --seconds gives it more");
    }
    match kept {
        Some(path) => writeln!(out, "kept in {}", path.display())?,
        None => writeln!(out, "nothing was measured, nothing is kept")?,
    }
    Ok(())
}

/// A table by the names of its thresholds.
pub fn numbers(table: Table) -> Value {
    Value::Object(THRESHOLDS.iter().map(|threshold| (threshold.name.to_string(), json!(threshold.of(table)))).collect::<Map<_, _>>())
}

fn trial_json(trial: &Trial) -> Value {
    let Trial { threshold, was, chosen, tries, whole } = trial;
    let tries: Vec<Value> =
        tries.iter().map(|t| json!({ "at": t.at, "with_us": t.with_s * 1e6, "without_us": t.without_s * 1e6, "noise": t.noise })).collect();
    json!({ "threshold": threshold.name, "about": threshold.about, "was": was, "chosen": chosen, "whole": whole, "tries": tries })
}
