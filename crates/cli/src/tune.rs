//! `weft tune`: measures which kernels are fastest on this device.

use crate::args::{Mapping, Source};
use crate::cache;
use crate::executor::{Choice, limits};
use crate::exit::{Interrupted, note, usage};
use crate::interrupt;
use crate::progress::Bar;
use anyhow::{Context, Result, anyhow};
use clap::ValueHint;
use kernels::THRESHOLDS;
use kernels::tune::{Shapes, Trial, Try, Tuned, tune};
use kernels::{Class, Device, Select};
use kernels::{Executor, Table};
use model::SessionOptions;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Measure which kernels are fastest on this device, and keep the result for all commands
///
/// Weft chooses between kernels by a table of thresholds (numbers of rows, keys, columns). Before
/// `weft tune` has run, it uses thresholds measured on other devices of the same class. All kernels
/// are correct, so a choice changes only the speed and, with --precision fast, the rounding. A
/// threshold changes only if this gains more than 3%. Thresholds that are not measured in time, or
/// before Ctrl-C, keep their value. There is one table per adapter, driver and version of Weft.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft tune                                tune the best GPU for the shapes of common models
  weft tune qwen3-8b --seconds 30          tune for the shapes of your own model
  weft tune --device 'RTX 4090' --json
  weft tune --forget                       go back to the defaults of the device class
  weft bench qwen3-8b --no-tune            compare with the speed before tuning")]
pub struct Args {
    /// Model whose shapes are measured: a GGUF file, or the name of a known model, of one of the
    /// hub or of one in Ollama [default: shapes of common models]
    #[arg(value_hint = ValueHint::FilePath)]
    model: Option<PathBuf>,

    /// Time limit in seconds; the last comparison may run longer
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// auto (the best GPU), gpu (also a software adapter), or part of an adapter's name as
    /// `weft devices` lists it
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Choice,

    /// Delete the table of this device instead of measuring
    #[arg(long, conflicts_with_all = ["model", "seconds"])]
    forget: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let device = open(&args.device)?;
    let path = cache::table_file(&device).ok_or_else(|| usage("there is no cache folder to save the result in"))?;
    if args.forget {
        return forget(&device, &path, args.json);
    }
    let (is_software, name) = (device.adapter().class == Class::Software, &device.adapter().name);
    if is_software && matches!(args.device, Choice::Auto) {
        return Err(usage(format!(
            "{name} is a software adapter, which --device auto never takes, so there is nothing to tune; \
             --device gpu tunes it all the same"
        )));
    }
    let shapes = args.model.as_deref().map(shapes).transpose()?;
    if is_software {
        note(&format!("software adapter {name}; --device auto never takes it, so only --device uses its table"));
    }
    let device = cache::attach(&device);
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
        cache::try_write(&path, &tuned.table.to_bytes(&device.table_key()))
            .with_context(|| format!("cannot keep {}", path.display()))?;
    }
    report(&device, &tuned, any.then_some(path.as_path()), args)?;
    if guard.raised() { Err(Interrupted.into()) } else { Ok(()) }
}

fn open(choice: &Choice) -> Result<Device> {
    let select = match choice {
        Choice::Cpu => {
            return Err(usage("the CPU has only one implementation of each operation; there is nothing to tune"));
        }
        Choice::Auto | Choice::Gpu => Select::Best,
        Choice::Name(name) => Select::Name(name.clone()),
    };
    Ok(Device::open(&select, limits())?)
}

/// The shapes of a model's layers.
fn shapes(path: &Path) -> Result<Shapes> {
    let source = Source { model: Some(path.to_path_buf()), mapping: Mapping::default(), verify: false };
    let checked = source.named(source.model_file()?.check(&Executor::Cpu))?;
    let shapes = Shapes::of(&checked.recording(&SessionOptions::default(), 1));
    shapes.ok_or_else(|| anyhow!("{}: the model has no layers that can be measured", source.name()))
}

fn forget(device: &Device, path: &Path, as_json: bool) -> Result<()> {
    let forgotten = match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        removed => removed.map(|()| true).with_context(|| format!("cannot remove {}", path.display()))?,
    };
    let (mut out, name) = (std::io::stdout(), &device.adapter().name);
    match (as_json, forgotten) {
        (true, _) => writeln!(out, "{}", json!({ "device": name, "forgotten": forgotten }))?,
        (false, true) => writeln!(out, "the table of {name} is deleted")?,
        (false, false) => writeln!(out, "there is no table of {name} to delete")?,
    }
    Ok(())
}

fn report(device: &Device, tuned: &Tuned, kept: Option<&Path>, args: &Args) -> Result<()> {
    let mut out = std::io::stdout();
    if args.json {
        let trials: Vec<Value> = tuned.trials.iter().map(trial_json).collect();
        let (name, whole) = (&device.adapter().name, tuned.whole());
        writeln!(
            out,
            "{}",
            json!({ "device": name, "table": numbers(tuned.table), "whole": whole, "file": kept, "measured": trials })
        )?;
        return Ok(());
    }
    writeln!(out, "{:<18} {:>6} {:>6}  gain over the next best, at", "", "was", "now")?;
    for Trial { threshold, was, chosen, tries, whole } in &tuned.trials {
        let gain = |tried: &Try| format!("{} {:+.0}%", tried.at, 100.0 * tried.gain());
        let gains: Vec<String> = tries.iter().map(gain).chain((!whole).then(|| "time ran out".to_string())).collect();
        let gains = if gains.is_empty() { "nothing to compare".to_string() } else { gains.join(", ") };
        writeln!(out, "{:<18} {was:>6} {chosen:>6}  {gains}", threshold.name)?;
    }
    if !tuned.whole() {
        note("time ran out before everything was measured; raise --seconds");
    }
    match kept {
        Some(path) => writeln!(out, "saved in {}", path.display())?,
        None => writeln!(out, "nothing was measured, so nothing is saved")?,
    }
    Ok(())
}

/// A table as JSON: its thresholds by name.
pub fn numbers(table: Table) -> Value {
    Value::Object(
        THRESHOLDS
            .iter()
            .map(|threshold| (threshold.name.to_string(), json!(threshold.of(table))))
            .collect::<Map<_, _>>(),
    )
}

fn trial_json(trial: &Trial) -> Value {
    let Trial { threshold, was, chosen, tries, whole } = trial;
    let tries: Vec<Value> = tries
        .iter()
        .map(|t| json!({ "at": t.at, "with_us": t.with_s * 1e6, "without_us": t.without_s * 1e6, "noise": t.noise }))
        .collect();
    json!({ "threshold": threshold.name, "about": threshold.about, "was": was, "chosen": chosen, "whole": whole, "tries": tries })
}
