//! `peers`: training beside torch, PEFT, TRL and llama.cpp, by `tests/peers/run.py`.

use crate::workspace::root;
use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::Command;

/// The script.
const SCRIPT: &str = "tests/peers/run.py";

#[derive(clap::Args)]
pub struct Args {
    /// A Python that has the packages of tests/peers/requirements.txt
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,

    /// The program to test [default: a release build]
    #[arg(long, value_name = "PROGRAM")]
    weft: Option<PathBuf>,

    /// Arguments of the script, such as `--seed 7 --only gradients`
    #[arg(last = true)]
    more: Vec<String>,
}

/// Runs the comparisons. Returns whether all are within their bounds.
pub fn run(args: &Args) -> Result<bool> {
    let weft = match &args.weft {
        Some(weft) => weft.clone(),
        None => built()?,
    };
    let mut script = Command::new(&args.python);
    script.arg(root().join(SCRIPT)).arg("--weft").arg(weft).args(&args.more);
    let python = || format!("{} cannot be run; name a Python with --python", args.python.display());
    Ok(script.status().with_context(python)?.success())
}

/// Builds the program.
fn built() -> Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--release", "-p", "cli"])
        .current_dir(root())
        .status()
        .context("cargo")?;
    anyhow::ensure!(status.success(), "the program cannot be built");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("release").join(format!("weft{}", std::env::consts::EXE_SUFFIX)))
}
