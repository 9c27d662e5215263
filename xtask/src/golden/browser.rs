//! Goldens in a browser: the package's module computes the logits, on both executors.
//!
//! `crates/web/tests/golden.mjs` drives the browser: jobs in, as JSON on stdin, a line of JSON for
//! each job out. The logits are in files.

use super::args::Args;
use super::check::Check;
use super::{Golden, ids};
use crate::workspace::root;
use crate::{npm, npy};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The folder of the driver, with the package and what drives browsers.
const FOLDER: &str = "crates/web";

/// What the driver says of a job.
#[derive(Deserialize)]
struct Said {
    /// The number of the job.
    job: usize,
    /// The executor that the model ran on.
    executor: String,
    seconds: f64,
    error: Option<String>,
}

/// Computes the logits of these files in a browser, and gives each comparison to `take`, with the
/// name of its file and its executor.
pub fn run(args: &Args, browser: &Path, goldens: &[Golden], mut take: impl FnMut(&str, &str, &Check)) -> Result<()> {
    let folder = root().join(FOLDER);
    ensure!(
        folder.join("js/dist/engine/weft_bg.wasm").exists(),
        "there is no package in {FOLDER}/js/dist; `cargo xtask web` builds it"
    );
    npm::install(&folder)?;
    let out = crate::packages::empty_folder("golden")?;
    let executors = ["cpu", "gpu"].into_iter().filter(|kind| args.executor.as_deref().is_none_or(|only| only == *kind));
    let jobs: Vec<(&str, &Golden)> =
        executors.flat_map(|kind| goldens.iter().map(move |golden| (kind, golden))).collect();
    let job = |(kind, golden): &(&str, &Golden)| -> Result<Value> {
        Ok(
            json!({ "device": kind, "file": std::path::absolute(golden.dir.join(&golden.name))?, "ids": ids(&golden.meta["ids"])? }),
        )
    };
    let request = json!({
        "browser": crate::browser::program(browser)?,
        "out": out,
        "jobs": jobs.iter().map(job).collect::<Result<Vec<_>>>()?,
    });
    let mut node = Command::new("node");
    node.arg("tests/golden.mjs").current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut driver = node.spawn().map_err(|error| npm::missing(error, "node", "nodejs"))?;
    driver.stdin.take().context("the driver has no stdin")?.write_all(request.to_string().as_bytes())?;
    let mut done = 0;
    for line in BufReader::new(driver.stdout.take().context("the driver has no stdout")?).lines() {
        let said: Said = serde_json::from_str(&line?).context("what the driver says")?;
        let (kind, golden) = jobs.get(said.job).context("the driver names another job")?;
        let check = match said.error {
            Some(error) => Check::refused(&anyhow::anyhow!(error)),
            None => {
                ensure!(said.executor == *kind, "the browser ran on {} instead of {kind}", said.executor);
                let got = npy::floats(&std::fs::read(out.join(format!("{}.f32", said.job)))?);
                let bound = if *kind == "cpu" { golden.bounds.cpu_logits } else { golden.bounds.gpu_logits };
                golden.compare("in a browser", &got, bound, Duration::from_secs_f64(said.seconds))
            }
        };
        take(&golden.name, kind, &check);
        done += 1;
    }
    ensure!(
        driver.wait()?.success() && done == jobs.len(),
        "{FOLDER}/tests/golden.mjs ended after {done} of {} jobs",
        jobs.len()
    );
    Ok(())
}
