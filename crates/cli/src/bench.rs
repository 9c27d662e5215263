//! `weft bench`: median tokens per second with least and most, bandwidth and share of the roof.

mod args;
mod engine;
mod grid;
mod measure;
mod table;
mod training;

use crate::exit::usage;
use anyhow::{Result, bail};
pub use args::Args;
use grid::Test;
use kernels::{Executor, Precision};
use measure::Bench;
use serde_json::Value;
use std::io::Write;

pub fn run(args: &Args) -> Result<()> {
    let tests = grid::tests(args);
    let Some(longest) = tests.iter().map(Test::positions).max() else {
        return Err(usage("nothing to measure: -p and -n are both 0"));
    };
    args.threads.apply()?;
    let file = args.source.model_file()?;
    let precision = if args.train { Precision::F32 } else { Precision::Fast };
    let options = args.place.session_or(Some(longest), precision, args.place.kv()).chunk(args.chunk.unwrap_or(0));
    let most = args.batch.iter().copied().max().unwrap_or(1);
    let sequences = options.clone().sequences(if args.train { 1 } else { most });
    let loaded = args.source.load(file, &args.place.device, &sequences, &args.adapters, !args.train)?;
    if args.profile {
        can_profile(loaded.model.executor())?;
    }
    let options = args.source.named(loaded.checked.settled(&options))?;
    let mut bench = args.source.named(Bench::new(args, loaded, options))?;
    let mut out = std::io::stdout();
    if !args.json {
        writeln!(out, "{}", table::HEAD)?;
    }
    let mut all = vec![];
    for test in tests {
        let result = bench.measure(test)?;
        if args.json {
            all.push(table::json(&bench, &result));
        } else {
            writeln!(out, "{}", table::line(&bench, &result))?;
        }
        if args.profile {
            let profile = bench.profile(test)?;
            writeln!(out, "\n{}\n", bench.profiled(&profile, &result))?;
        }
    }
    if args.json {
        writeln!(out, "{}", Value::Array(all))?;
    }
    Ok(())
}

/// Refuses a profile before anything is measured, where no device can give one.
fn can_profile(executor: &Executor) -> Result<()> {
    let what = match executor {
        Executor::Cpu => "the model runs on the CPU".to_string(),
        Executor::Gpu(device) if !device.caps().timestamps => format!("{} has none", device.adapter().name),
        Executor::Gpu(_) => return Ok(()),
    };
    bail!("--profile needs a GPU with timestamps, but {what}; `weft devices` lists the GPUs, --device chooses one")
}
