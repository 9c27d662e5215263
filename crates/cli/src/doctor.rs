//! `weft doctor`: whether this machine's GPU computes what it should, operation by operation.

mod quick;
mod report;

use crate::args::{Activations, Context, Kv, Source};
use crate::executor::Choice;
use crate::exit::{Interrupted, note, usage};
use crate::interrupt;
use crate::lora::Adapters;
use crate::progress::Bar;
use anyhow::{Context as _, Result, anyhow};
use clap::ValueHint;
use kernels::{Device, Executor};
use model::{Error, Model, SessionOptions, Walk};
use report::{Head, Report};
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Compare every kernel that a model uses on the GPU with the CPU
///
/// Steps of every plan that a session of the model has run on the GPU, one operation at a time:
/// prompts of several lengths, one token, batches, and the same in deep contexts, which are filled
/// with drawn values. The CPU computes each operation as well, from the inputs that the GPU read:
/// one layer of each kind, and 16 rows where a step has more than 64. The report tells which
/// kernels agree, and which did not run. If a model answers with nonsense on one machine only, send
/// the file of --report with the bug. A wrong kernel ends the command with exit code 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft doctor                               check the GPU with the model that weft ships
  weft doctor qwen3-8b                      check the kernels that this model uses
  weft doctor model.gguf --report gpu.json  write a report to send to the developers
  weft doctor model.gguf --quick            check one prompt and one token only
  weft doctor model.gguf --all              the same, all layers instead of one of each kind
  weft doctor model.gguf --device 'RTX 4090' --precision f32
  weft doctor --json | jq '.operations[] | select(.agrees | not)'")]
pub struct Args {
    #[command(flatten)]
    source: Source,

    /// gpu, or part of an adapter's name as `weft devices` lists it
    #[arg(long, value_name = "DEVICE", default_value = "gpu", help_heading = crate::args::MACHINE)]
    device: Choice,

    /// Type of the KV cache
    #[arg(long, value_enum, value_name = "TYPE", default_value = "f16")]
    kv: Kv,

    /// Precision of activations, as in `weft run`
    #[arg(long, value_enum, value_name = "PRECISION", default_value = "fast")]
    precision: Activations,

    #[command(flatten)]
    context: Context,

    /// Draws the rows that are compared, and the values of deep contexts
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write a report to send to the developers: the device, its driver and features, and a verdict
    /// for each kernel. It has no name of a file or a person
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    /// Compare one prompt and a step of one token only
    #[arg(long, conflicts_with_all = ["ctx", "seed", "report"])]
    quick: bool,

    /// Tokens of the prompt of --quick, which this implies. With more, a GPU uses the kernels of
    /// longer prompts [default: 64]
    #[arg(long, value_name = "N", conflicts_with_all = ["ctx", "seed", "report"], value_parser = clap::value_parser!(u32).range(1..))]
    tokens: Option<u32>,

    /// As --quick, and compare every operation, not only the first one with the same kernels and
    /// sizes
    #[arg(long, conflicts_with_all = ["ctx", "seed", "report"])]
    all: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What helps against a wrong kernel.
const HELP: &str = "a newer driver may help; until then use --device cpu, or try whether this command agrees with --precision f32, \
                    --without coop or --without subgroups and use the same flag; send the developers the file of --report";

pub fn run(args: &Args) -> Result<()> {
    args.report.as_deref().map_or(Ok(()), crate::output::writable)?;
    if args.quick || args.all || args.tokens.is_some() {
        return quick::run(args);
    }
    let options = args.options().context(args.context.ctx);
    let (device, model) = load(args, &options)?;
    let host = reference(args)?;
    let mut walk = args.source.named(Walk::new(&model, &host, &options, args.seed))?;
    let context = args.source.named(options.context_for(model.summary()))?;
    let head = Head {
        device: &device,
        model: &model,
        precision: args.precision.into(),
        kv: args.kv.into(),
        context,
        seed: args.seed,
    };
    let mut out = std::io::stdout().lock();
    if !args.json {
        title(&mut out, args, &device)?;
        writeln!(out, "context {context}; rows and values are drawn by --seed {}\n", args.seed)?;
    }
    let mut report = follow(args, &mut walk)?;
    let ran: HashSet<String> = report.kernels().cloned().collect();
    report.leave_out(args.source.named(walk.not_run(&ran))?);
    let compared = report.compared();
    if args.json {
        writeln!(out, "{}", report.json(&head))?;
    } else {
        write!(out, "{}", report.text())?;
        writeln!(out, "not run: kernels of training (see `weft gradients`)")?;
        if report.wrong() == 0 {
            writeln!(out, "\nall {compared} operations agree")?;
        }
    }
    if let Some(path) = &args.report {
        let text = format!("{:#}\n", report.json(&head));
        gguf::atomic_write(path, |out| out.write_all(text.as_bytes())).with_context(|| path.display().to_string())?;
        note(&format!("the report is in {}", path.display()));
    }
    match report.wrong() {
        0 => Ok(()),
        wrong => {
            let (name, faults) = (&device.adapter().name, report.faults().join("; "));
            Err(anyhow!("{wrong} of {compared} operations are wrong on {name}: {faults}; {HELP}"))
        }
    }
}

/// Runs all steps.
fn follow(args: &Args, walk: &mut Walk) -> Result<Report> {
    let cancel = Arc::new(AtomicBool::new(false));
    let _guard = interrupt::stops(Arc::clone(&cancel));
    let bar = Bar::count("comparing");
    let mut report = Report::default();
    let steps = walk.steps().to_vec();
    for (done, step) in steps.iter().enumerate() {
        let text = step.to_string();
        bar.say(format!("comparing {text}"));
        bar.set(done as u64, steps.len() as u64);
        match walk.run(step, &cancel) {
            Ok(agreements) => report.add(&text, agreements),
            Err(Error::Cancelled) => return Err(Interrupted.into()),
            // A batch is no part of what the model needs to run.
            Err(error @ Error::TooLarge { .. }) if step.sequences() > 1 => report.skip(&text, error.to_string()),
            Err(error) => return args.source.named(Err(error)).context(text),
        }
    }
    Ok(report)
}

impl Args {
    fn options(&self) -> SessionOptions {
        SessionOptions::default().kv(self.kv.into()).precision(self.precision.into())
    }
}

/// The model on its GPU.
fn load(args: &Args, options: &SessionOptions) -> Result<(Device, Model)> {
    let file = args.source.model_file()?;
    let Executor::Gpu(device) = args.source.located(args.device.open(&file, options))? else {
        return Err(anyhow!("the CPU is what a GPU is compared with; name a GPU (see --device and `weft devices`)"));
    };
    let loaded = args.source.load(file, &args.device, options, &Adapters::default(), false);
    let loaded = loaded.map_err(|error| match (error.downcast_ref(), args.tokens) {
        (Some(Error::Context { .. }), Some(tokens)) => {
            usage(format!("--tokens {tokens} and one more do not fit: {error:#}"))
        }
        _ => error,
    })?;
    Ok((device, loaded.model))
}

/// The model that these arguments name, on the CPU.
fn reference(args: &Args) -> Result<Model> {
    let file = args.source.model_file()?;
    let bar = Bar::bytes("loading onto the CPU");
    args.source.named(file.on_with(&Executor::Cpu, &|progress| bar.show(progress)))
}

/// The lines that say what is compared where.
fn title(out: &mut impl Write, args: &Args, device: &Device) -> Result<()> {
    let adapter = device.adapter();
    let [kv, precision] = [args.kv.name(), args.precision.name()];
    writeln!(
        out,
        "weft {} on {} ({}, driver {})",
        env!("CARGO_PKG_VERSION"),
        adapter.name,
        adapter.backend,
        adapter.driver
    )?;
    writeln!(out, "{}, {precision} activations, {kv} KV", args.source.name())?;
    Ok(())
}
