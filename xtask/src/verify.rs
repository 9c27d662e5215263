//! `verify-shaders`: validates every shader with naga, compares it with its oracle on a GPU, and
//! then plants faults in it. Or gives every shader to a browser, or looks for races.

mod ledger;

use crate::workspace::root;
use crate::{browser, compiled, lanes, mutate, races, shaders};
use anyhow::Context as _;
use kernels::testing::kernel::compose::Shader;
use kernels::testing::language;
use kernels::testing::sweep::{self, Target};
use kernels::{Agreement, Device, Limits, Select};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Validate every composed shader, with and without constants for its params, then compare each
/// with its oracle on a GPU
#[derive(Clone, clap::Args)]
pub struct Args {
    /// Only kernels and variants whose name contains this
    #[arg(long, default_value = "")]
    kernel: String,
    /// Random cases per shader; shaders that read a weight format run a quarter of them, at least
    /// one
    #[arg(long, default_value_t = 16)]
    cases: usize,
    /// Validate every shader, but compare only every Nth with its oracle: a software driver takes a
    /// second to compile one. With --races: of each variant one shader, and every Nth of the others
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    #[arg(conflicts_with_all = ["mutate", "record"])]
    every: u16,
    /// First seed of the cases
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Adapter whose name contains this [default: the best adapter]
    #[arg(long)]
    adapter: Option<String>,
    /// Run only the checks that need no GPU
    #[arg(long, conflicts_with = "mutate")]
    no_gpu: bool,
    /// Instead of the cases of right kernels, plant faults in the shaders and give operations wrong
    /// parameters, one at a time, and check that a case finds each; results of cards go to
    /// docs/faults.tsv
    #[arg(long, group = "of_files")]
    mutate: bool,
    /// With --mutate on a card: leave out what docs/faults.tsv has with the same kernels and cases
    #[arg(long, requires = "mutate")]
    resume: bool,
    /// With --mutate: plant some faults in each file of kernels with cooperative matrices, which
    /// only cards can run, and interpret them without a GPU; nothing is recorded
    #[arg(long, requires = "mutate", conflicts_with_all = ["adapter", "resume", "parameters", "since"])]
    interpreted: bool,
    /// With --interpreted: faults of each file, at most, spread over the file
    #[arg(long, default_value_t = 8, requires = "interpreted", value_name = "N")]
    faults: usize,
    /// With --mutate: only faults in shader files and kernels that changed since this commit,
    /// committed or not
    #[arg(long, value_name = "REV", requires = "mutate", conflicts_with = "files")]
    since: Option<String>,
    /// With --mutate: only wrong parameters of operations
    #[arg(long, requires = "mutate", conflicts_with_all = ["files", "lines"])]
    parameters: bool,
    /// Write the results of kernels that hold on this card to docs/parity.tsv, with the hash of
    /// their shaders
    #[arg(long, conflicts_with_all = ["mutate", "no_gpu"])]
    record: bool,
    /// With --record: run nothing and write nothing; say without a GPU which lines of
    /// docs/parity.tsv are missing or stale
    #[arg(long, requires = "record", conflicts_with_all = ["cases", "seed", "adapter", "kernel", "every"])]
    check: bool,
    /// Instead of all this, compile every shader in a headless browser: Chromium on $PATH, or the
    /// Chromium at PATH
    #[arg(long, value_name = "PATH", group = "of_files", num_args = 0..=1, require_equals = true, default_missing_value = "chromium")]
    #[arg(conflicts_with_all = ["cases", "seed", "adapter", "no_gpu", "record"])]
    browser: Option<PathBuf>,
    /// Instead of all this, interpret every shader that has a barrier, without a GPU: check that no
    /// two accesses race, and that two race without each of the barriers
    #[arg(long, group = "of_files", conflicts_with_all = ["cases", "seed", "adapter", "no_gpu", "record"])]
    races: bool,
    /// Instead of all this, compute shaders on the host and compare them with their oracles: all
    /// with cooperative matrices, and all that exchange values in subgroups, of 4 to 64 threads
    #[arg(long, conflicts_with_all = ["of_files", "cases", "seed", "adapter", "no_gpu", "record"])]
    interpret: bool,
    /// With --mutate: only faults in shader files whose path contains this; with --browser or
    /// --races: only shaders with such a file. Can be given several times
    #[arg(long = "file", value_name = "PATH", requires = "of_files")]
    files: Vec<String>,
    /// With --mutate: only faults in these lines, for example 85, 54- or 54-80
    #[arg(long, default_value = "1-", requires = "mutate", value_parser = lines)]
    lines: RangeInclusive<usize>,
}

impl Args {
    fn select(&self) -> Select {
        self.adapter.clone().map_or(Select::Best, Select::Name)
    }
}

/// Parses the argument of `--lines`.
fn lines(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{text:?} is not a line number"));
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, number(text)?),
        Some((first, "")) => (number(first)?, usize::MAX),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    if (1..=last).contains(&first) {
        Ok(first..=last)
    } else {
        Err("lines count from 1, the first not after the last".to_string())
    }
}

/// Runs the checks and prints their tables. Returns true if all checks passed.
pub fn run(args: &Args) -> anyhow::Result<bool> {
    if let Some(browser) = &args.browser {
        return browser::run(browser, &args.kernel, &args.files);
    }
    if args.races {
        return races::run(&args.kernel, &args.files, args.every.into());
    }
    if args.interpret {
        return races::computed::held::run(&args.kernel);
    }
    if args.interpreted {
        let Args { kernel, files, lines, faults, .. } = args;
        return mutate::interpreted::run(&mutate::interpreted::Wanted { kernel, files, lines, most: *faults });
    }
    if args.check {
        return ledger::check();
    }
    let mut holds = compile(&args.kernel)?;
    if args.no_gpu {
        return Ok(holds);
    }
    let select = args.select();
    let limits = Limits::from_env();
    let device = sweep::open(&select, limits)?;
    if args.record {
        ledger::admits(&device, limits)?;
    }
    let adapter = device.adapter();
    println!("\n{} ({:?}, {}, {})", adapter.name, adapter.class, adapter.backend, adapter.driver);
    let wanted = |target: &Target| target.shader.variant.name.contains(&args.kernel);
    let all = |device: &Device| Target::all(device.caps()).into_iter().filter(wanted);
    let every = usize::from(args.every);
    let targets: Vec<_> = all(&device).step_by(every).collect();
    if args.mutate {
        let Args { files, lines, resume, parameters, since, .. } = args;
        let since = since.as_ref().map(|rev| mutate::Changed::since(&root(), rev)).transpose()?;
        let partial = !args.kernel.is_empty() || *lines != (1..=usize::MAX);
        let wanted = mutate::Wanted { files, lines, parameters: *parameters, since, partial, resume: *resume };
        holds &= mutate::run(&device, &select, &targets, &wanted)?;
    } else {
        holds &= parity(args, limits, &device, &targets)?;
        if limits != Limits::WebGpu && !args.record {
            let device = sweep::open(&select, Limits::WebGpu)?;
            // Other shaders than above.
            let targets: Vec<_> = all(&device).skip(every / 2).step_by(every).collect();
            println!("\nagain under WebGPU's default limits, with half as many cases");
            let fewer = Args { cases: args.cases.div_ceil(2), ..args.clone() };
            holds &= parity(&fewer, Limits::WebGpu, &device, &targets)?;
        }
    }
    Ok(holds)
}

fn compile(wanted: &str) -> anyhow::Result<bool> {
    let variants = language::variants().filter(|variant| variant.name.contains(wanted));
    let mut shaders: Vec<_> = variants.flat_map(|variant| Shader::all(variant, &[0, 8, 32])).collect();
    anyhow::ensure!(!shaders.is_empty(), "no kernel's name contains {wanted:?}");
    shaders.extend(compiled::shaders(wanted));
    let constants = shaders.iter().filter(|shader| !shader.given.is_empty()).count();
    let wrong = AtomicUsize::new(0);
    let work = |_: &mut (), shader: &Shader| {
        for finding in shaders::check(shader) {
            eprintln!("{}: {finding}", shader.label());
            wrong.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    lanes::each(lanes::cores(), &shaders, || Ok(()), work)?;
    let wrong = wrong.into_inner();
    let all = shaders.len();
    println!(
        "{all} shaders, {constants} of them with constants for params, validated and written as SPIR-V, MSL and HLSL: {wrong} findings"
    );
    Ok(wrong == 0)
}

fn parity(args: &Args, limits: Limits, device: &Device, targets: &[Target]) -> anyhow::Result<bool> {
    println!("{:<44} {:>5} {:>10} {:>8} {:>8}", "kernel", "cases", "worst row", "bound", "peak");
    let (beyond, passed) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let work = |device: &mut Device, target: &Target| {
        let label = target.shader.label();
        let cases = if target.format().is_some() { args.cases.div_ceil(4) } else { args.cases }.max(1);
        let worst = target.run(device, args.seed, cases).with_context(|| label.clone())?;
        let verdict = match worst.overrun {
            true => "  WRITES PAST ITS END".to_string(),
            false if worst.holds() => String::new(),
            false => format!("  EXCEEDS: {:?}", worst.worst),
        };
        let Agreement { difference, bound, .. } = &worst.worst;
        println!(
            "{label:<44} {cases:>5} {:>10.1e} {:>8.0e} {:>8.0e}{verdict}",
            difference.nmse, bound, difference.peak
        );
        if let Some(smallest) = &worst.smallest {
            println!("its smallest case, for crates/kernels/tests/parity/once_red.rs:\n{smallest:?}");
        }
        let share = worst.worst.error() / bound;
        passed.lock().expect("no panic").push(ledger::Passed {
            target: target.clone(),
            cases,
            share,
            holds: worst.holds(),
        });
        beyond.fetch_add(usize::from(!worst.holds()), Ordering::Relaxed);
        Ok(())
    };
    lanes::each(lanes::for_device(device), targets, || Ok(sweep::open(&args.select(), limits)?), work)?;
    let beyond = beyond.into_inner();
    println!("{} kernels, {beyond} beyond their bound", targets.len());
    if args.record {
        ledger::record(device, targets, passed.into_inner().expect("no panic"))?;
    }
    Ok(beyond == 0)
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_are_one_some_or_all_that_follow_and_never_none() {
        assert_eq!(lines("85"), Ok(85..=85));
        assert_eq!(lines("54-"), Ok(54..=usize::MAX));
        assert_eq!(lines("54-80"), Ok(54..=80));
        for bad in ["", "0", "-", "-5", "80-54", "x", "1-x", "1-2-3"] {
            assert!(lines(bad).is_err(), "{bad}");
        }
    }
}
