//! `weft doctor`: whether this machine's GPU computes what it should, operation by operation.

use crate::args::{Activations, Kv, Source};
use crate::executor::Choice;
use crate::exit::{Interrupted, usage};
use crate::interrupt;
use crate::lora::Adapters;
use crate::progress::Bar;
use anyhow::{Result, anyhow};
use kernels::{Agreement, Executor, Mirror, Precision};
use model::{Error, Model, Session, SessionOptions};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Compare every kernel that a model uses on the GPU with the CPU
///
/// A prompt and a step of one token run on the GPU, one operation at a time. The CPU computes each
/// operation as well, from the inputs that the GPU read. The report tells which kernels agree. If a
/// model answers with nonsense on one machine only, send this report with the bug. A wrong kernel
/// ends the command with exit code 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft doctor                              check the GPU with the model that weft ships
  weft doctor qwen3-8b-Q4_K_M.gguf         check the kernels that this model uses
  weft doctor model.gguf --all             compare all layers instead of one of each kind
  weft doctor model.gguf --device 'RTX 4090' --precision f32
  weft doctor --json | jq '.operations[] | select(.agrees | not)'")]
pub struct Args {
    #[command(flatten)]
    source: Source,

    /// gpu, or part of an adapter's name as `weft devices` lists it
    #[arg(long, value_name = "DEVICE", default_value = "gpu")]
    device: Choice,

    /// Type of the KV cache
    #[arg(long, value_enum, value_name = "TYPE", default_value = "f16")]
    kv: Kv,

    /// Precision of activations, as in `weft run`
    #[arg(long, value_enum, value_name = "PRECISION", default_value = "fast")]
    precision: Activations,

    /// Tokens of the prompt. With more, a GPU uses the kernels of longer prompts
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    tokens: u32,

    /// Compare every operation, not only the first one with the same kernels and sizes
    #[arg(long)]
    all: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let file = args.source.model_file()?;
    let options = SessionOptions::default().context(args.tokens + 2).kv(args.kv.into()).precision(match args.precision {
        Activations::Fast => Precision::Fast,
        Activations::F32 => Precision::F32,
    });
    let Executor::Gpu(device) = args.source.located(args.device.open(&file, &options))? else {
        return Err(anyhow!("the CPU is what a GPU is compared with; name a GPU (see --device and `weft devices`)"));
    };
    let loaded =
        args.source.load(file, &args.device, &options, &Adapters::default(), false).map_err(|error| match error.downcast_ref() {
            Some(Error::Context { .. }) => usage(format!("--tokens {} and one more do not fit: {error:#}", args.tokens)),
            _ => error,
        })?;
    let host = reference(args)?;
    let mut session = args.source.named(loaded.model.session(options))?;
    let mirror = Mirror::new(Arc::clone(host.weights()));
    let mut mirror = if args.all { mirror } else { mirror.once() };
    let vocabulary = session.model().summary().vocabulary;
    // Ids spread over the vocabulary: a prompt of text needs no tokenizer here.
    let ids: Vec<u32> = (0..args.tokens + 1).map(|n| n.wrapping_mul(7919) % vocabulary).collect();
    let (prompt, next) = ids.split_at(args.tokens as usize);
    let adapter = device.adapter();
    let (kv, precision) = (args.kv.name(), args.precision.name());
    let mut out = std::io::stdout().lock();
    let mut report = Report { text: String::new(), operations: vec![], wrong: 0 };
    if !args.json {
        writeln!(out, "weft {} on {} ({}, driver {})", env!("CARGO_PKG_VERSION"), adapter.name, adapter.backend, adapter.driver)?;
        writeln!(out, "{}, {} activations, {} KV", args.source.name(), precision, kv)?;
    }
    for (what, ids) in [(format!("a prompt of {} tokens", prompt.len()), prompt), ("a step of one token".to_string(), next)] {
        args.source.named(session.feed(ids))?;
        let agreements = match compare(&mut session, &mut mirror, &what) {
            Err(Error::Cancelled) => return Err(Interrupted.into()),
            other => args.source.named(other)?,
        };
        report.add(&what, &agreements);
        if !args.json {
            write!(out, "{}", std::mem::take(&mut report.text))?;
        }
    }
    let compared = report.operations.len();
    if args.json {
        let device = json!({ "name": adapter.name, "backend": adapter.backend, "driver": adapter.driver });
        let (model, version) = (args.source.name(), env!("CARGO_PKG_VERSION"));
        let object = json!({
            "version": version, "device": device, "model": model, "kv": kv, "precision": precision,
            "agrees": report.wrong == 0, "operations": report.operations,
        });
        writeln!(out, "{object}")?;
    } else if report.wrong == 0 {
        writeln!(out, "\nall {compared} operations agree")?;
    }
    match report.wrong {
        0 => Ok(()),
        wrong => Err(anyhow!("{wrong} of {compared} operations are wrong on {}; a newer driver may help, or --device cpu", adapter.name)),
    }
}

/// The same model on the CPU.
fn reference(args: &Args) -> Result<Model> {
    let file = args.source.model_file()?;
    let bar = Bar::bytes("loading onto the CPU");
    args.source.named(file.on_with(&Executor::Cpu, &|done, total| bar.set(done, total)))
}

/// Evaluates the fed tokens on both executors.
fn compare(session: &mut Session, mirror: &mut Mirror, what: &str) -> Result<Vec<Agreement>, Error> {
    let bar = Bar::count(format!("comparing {what}"));
    let guard = interrupt::stops(session.cancel_flag());
    let cancel = session.cancel_flag();
    session.agree(
        mirror,
        Some(&|done, all| {
            bar.set(u64::from(done), u64::from(all));
            if guard.raised() {
                cancel.store(true, Ordering::Relaxed);
            }
        }),
    )
}

struct Report {
    text: String,
    operations: Vec<Value>,
    wrong: usize,
}

impl Report {
    /// Adds a line for each operation of a step.
    fn add(&mut self, what: &str, agreements: &[Agreement]) {
        self.text += &format!("\n{what}\n{:<5} {:>5} {:>9} {:>9} {:>9}  kernels\n", "", "layer", "error", "bound", "peak");
        for of in agreements {
            let Agreement { kernels, layer, worst, difference, bound, .. } = of;
            let (verdict, kernels) = (if of.holds() { "ok" } else { "WRONG" }, kernels.join(" + "));
            let place = if of.holds() { String::new() } else { format!(" ({worst}, row {})", difference.row) };
            let number = layer.map_or("-".to_string(), |layer| layer.to_string());
            let (nmse, peak) = (difference.nmse, difference.peak);
            self.text += &format!("{verdict:<5} {number:>5} {nmse:>9.1e} {bound:>9.0e} {peak:>9.1e}  {kernels}{place}\n");
            self.wrong += usize::from(!of.holds());
            self.operations.push(json!({
                "step": what, "layer": layer, "kernels": kernels, "agrees": of.holds(), "error": finite(nmse), "bound": bound,
                "peak": finite(peak), "worst": worst, "row": difference.row,
            }));
        }
    }
}

/// A number, or null where JSON has none.
fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}
