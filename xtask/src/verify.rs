//! `verify-shaders`: validates every shader with naga, compares it with its oracle on a GPU, and
//! then plants faults in it. Or gives every shader to a browser.

use crate::{browser, lanes, mutate, shaders};
use anyhow::Context as _;
use kernels::testing::kernel::compose::Shader;
use kernels::testing::lower;
use kernels::testing::sweep::{self, Target};
use kernels::{Agreement, Class, Device, Limits, Select};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Validate every composed shader, then compare each with its oracle on a GPU
#[derive(clap::Args)]
pub struct Args {
    /// Only kernels and variants whose name contains this
    #[arg(long, default_value = "")]
    kernel: String,
    /// Random cases per shader; shaders that read a weight format run a quarter of them, at least
    /// one
    #[arg(long, default_value_t = 16)]
    cases: usize,
    /// First seed of the cases
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Adapter whose name contains this [default: the best adapter]
    #[arg(long)]
    adapter: Option<String>,
    /// Run only the checks that need no GPU
    #[arg(long, conflicts_with = "mutate")]
    no_gpu: bool,
    /// Also plant faults in the shaders, one at a time, and check that a case finds each
    #[arg(long, group = "of_files")]
    mutate: bool,
    /// Instead of all this, compile every shader in a headless browser: Chromium on $PATH, or the
    /// Chromium at PATH
    #[arg(long, value_name = "PATH", group = "of_files", num_args = 0..=1, require_equals = true, default_missing_value = "chromium")]
    #[arg(conflicts_with_all = ["cases", "seed", "adapter", "no_gpu"])]
    browser: Option<PathBuf>,
    /// With --mutate: only faults in shader files whose path contains this; with --browser: only
    /// shaders with such a file
    #[arg(long, default_value = "", requires = "of_files")]
    file: String,
    /// With --mutate: only faults in these lines, for example 85, 54- or 54-80
    #[arg(long, default_value = "1-", requires = "mutate", value_parser = lines)]
    lines: RangeInclusive<usize>,
}

/// Parses the argument of `--lines`.
fn lines(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{text:?} is not a line number"));
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, number(text)?),
        Some((first, "")) => (number(first)?, usize::MAX),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    if (1..=last).contains(&first) { Ok(first..=last) } else { Err("lines count from 1, the first not after the last".to_string()) }
}

/// Runs the checks and prints their tables. Returns true if all checks passed.
pub fn run(args: &Args) -> anyhow::Result<bool> {
    if let Some(browser) = &args.browser {
        return browser::run(browser, &args.kernel, &args.file);
    }
    let mut holds = compile(&args.kernel)?;
    if args.no_gpu {
        return Ok(holds);
    }
    let select = args.adapter.clone().map_or(Select::Best, Select::Name);
    let device = sweep::open(&select, Limits::from_env())?;
    let adapter = device.adapter();
    println!("\n{} ({:?}, {}, {})", adapter.name, adapter.class, adapter.backend, adapter.driver);
    let targets: Vec<_> = Target::all(device.caps()).into_iter().filter(|t| t.shader.variant.name.contains(&args.kernel)).collect();
    if args.mutate {
        holds &= mutate::run(&device, &targets, &args.file, &args.lines)?;
    } else {
        holds &= parity(args, &select, &device, &targets)?;
    }
    Ok(holds)
}

fn compile(wanted: &str) -> anyhow::Result<bool> {
    let variants = lower::variants().filter(|variant| variant.name.contains(wanted));
    let shaders: Vec<_> = variants.flat_map(|variant| Shader::all(variant, &[0, 8, 32])).collect();
    anyhow::ensure!(!shaders.is_empty(), "no kernel's name contains {wanted:?}");
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
    println!("{} shaders validated and written as SPIR-V, MSL and HLSL: {wrong} findings", shaders.len());
    Ok(wrong == 0)
}

fn parity(args: &Args, select: &Select, device: &Device, targets: &[Target]) -> anyhow::Result<bool> {
    println!("{:<44} {:>5} {:>10} {:>8} {:>8}", "kernel", "cases", "worst row", "bound", "peak");
    let beyond = AtomicUsize::new(0);
    let work = |device: &mut Device, target: &Target| {
        let label = target.shader.label();
        let cases = if target.format().is_some() { args.cases.div_ceil(4) } else { args.cases };
        let worst = target.run(device, args.seed, cases.max(1)).with_context(|| label.clone())?;
        let verdict = match worst.overrun {
            true => "  WRITES PAST ITS END".to_string(),
            false if worst.holds() => String::new(),
            false => format!("  EXCEEDS: {:?}", worst.worst),
        };
        let Agreement { difference, bound, .. } = &worst.worst;
        println!("{label:<44} {cases:>5} {:>10.1e} {:>8.0e} {:>8.0e}{verdict}", difference.nmse, bound, difference.peak);
        beyond.fetch_add(usize::from(!worst.holds()), Ordering::Relaxed);
        Ok(())
    };
    // A software driver uses only a few threads per device, so every thread opens a device. One
    // thread keeps a GPU busy.
    let threads = if device.adapter().class == Class::Software { lanes::cores() } else { 1 };
    lanes::each(threads, targets, || Ok(sweep::open(select, Limits::from_env())?), work)?;
    let beyond = beyond.into_inner();
    println!("{} kernels, {beyond} beyond their bound", targets.len());
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
