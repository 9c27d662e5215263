//! `turns`: times two binaries of `weft` alternately.

use anyhow::Context as _;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Time `weft bench` of two binaries alternately and compare the medians. Other load on the machine
/// then affects both binaries.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask turns /tmp/old/weft /tmp/new/weft -- qwen3-8b.gguf -p 512,2048 -n 128 --device gpu
  cargo xtask turns old new --runs 9 --within 2 -- -p 64 -n 32")]
pub struct Args {
    /// The binary of the commit to compare with
    old: PathBuf,
    /// The binary of the commit to test
    new: PathBuf,
    /// Runs of each binary
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Largest allowed difference of the medians, in percent
    #[arg(long, default_value_t = 1.0)]
    within: f64,
    /// Arguments for `weft bench`
    #[arg(last = true)]
    bench: Vec<String>,
}

/// A test of `weft bench`, with the tokens per second of each run of the old and of the new binary.
struct Test {
    name: String,
    rates: [Vec<f64>; 2],
}

/// Returns true if all medians differ by at most the allowed percentage.
pub fn run(args: &Args) -> anyhow::Result<bool> {
    let mut tests: Vec<Test> = vec![];
    for run in 0..args.runs {
        // In every second run the new binary goes first.
        let order = if run % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let binary = [&args.old, &args.new][side];
            eprintln!("run {} of {}: {}", run + 1, args.runs, binary.display());
            for (name, rate) in bench(binary, &args.bench)? {
                let at = tests.iter().position(|test| test.name == name).unwrap_or_else(|| {
                    tests.push(Test { name, rates: [vec![], vec![]] });
                    tests.len() - 1
                });
                tests[at].rates[side].push(rate);
            }
        }
    }
    println!("{:<44} {:>10} {:>10} {:>8} {:>8}", "test", "old tok/s", "new tok/s", "new/old", "spread");
    let mut near = true;
    for Test { name, rates } in &tests {
        anyhow::ensure!(
            rates.iter().all(|rates| rates.len() == args.runs as usize),
            "{name}: not every run of both binaries has this test"
        );
        let [old, new] = rates.each_ref().map(|rates| median(rates));
        let apart = (new / old - 1.0).abs() * 100.0;
        let spread = rates.iter().map(|rates| spread(rates)).fold(0.0, f64::max);
        println!("{name:<44} {old:>10.1} {new:>10.1} {:>8.4} {spread:>7.1}%", new / old);
        near &= apart <= args.within;
    }
    if !near {
        eprintln!("medians differ by more than {}%", args.within);
    }
    Ok(near)
}

/// The tests of one run, with tokens per second.
fn bench(binary: &Path, more: &[String]) -> anyhow::Result<Vec<(String, f64)>> {
    let ran = Command::new(binary)
        .arg("bench")
        .args(more)
        .arg("--json")
        .output()
        .with_context(|| format!("running {}", binary.display()))?;
    anyhow::ensure!(
        ran.status.success(),
        "{} bench: {}",
        binary.display(),
        String::from_utf8_lossy(&ran.stderr).trim()
    );
    let printed: Value =
        serde_json::from_slice(&ran.stdout).with_context(|| format!("reading {} bench --json", binary.display()))?;
    let test = |test: &Value| {
        let name = format!("{} {}", test["model"].as_str()?, test["test"].as_str()?);
        Some((name, test["tokens_per_second"].as_f64()?))
    };
    let tests = printed.as_array().into_iter().flatten().map(test).collect::<Option<Vec<_>>>();
    tests
        .filter(|tests| !tests.is_empty())
        .with_context(|| format!("{} bench --json: no tests with a model, a name and a rate", binary.display()))
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    f64::midpoint(low, high)
}

/// The difference between the largest and the smallest rate, in percent of the median.
fn spread(rates: &[f64]) -> f64 {
    let (least, most) =
        rates.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &rate| (least.min(rate), most.max(rate)));
    (most - least) / median(rates) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_odd_and_even_numbers_of_runs() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
        assert_eq!(spread(&[90.0, 110.0, 100.0]), 20.0);
    }
}
