//! Goldens in a browser: the package's module computes the logits on both executors, and trains.
//!
//! `crates/web/tests/golden.mjs` drives the browser: jobs in, as JSON on stdin, a line of JSON for
//! each job out. Logits and adapters are in files.

use super::args::Args;
use super::check::Check;
use super::gradients;
use super::ids;
use super::trajectories::{self, Run, Trajectory};
use crate::workspace::root;
use crate::{npm, npy};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use train::TrainerOptions;

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
    /// The losses and norms of the steps, and the loss after them.
    #[serde(default)]
    losses: Vec<f64>,
    #[serde(default)]
    norms: Vec<f64>,
    #[serde(default)]
    after: f64,
}

/// What a browser computes.
enum Job<'a> {
    /// The logits of a file.
    Logits(&'a super::Golden),
    /// A trajectory of a folder.
    Steps(&'a gradients::Golden, Box<Trajectory>),
}

impl Job<'_> {
    /// The job as the driver gets it, without its device.
    fn request(&self) -> Result<Value> {
        match self {
            Self::Logits(golden) => {
                let file = std::path::absolute(golden.dir.join(&golden.name))?;
                Ok(json!({ "file": file, "ids": ids(&golden.meta["ids"])? }))
            }
            Self::Steps(golden, trajectory) => {
                let TrainerOptions { adamw, rate, clip, .. } = &trajectory.options;
                let lines: Vec<Value> = golden
                    .documents()?
                    .iter()
                    .map(|of| json!({ "ids": of.ids, "targets": signed(&of.targets) }))
                    .collect();
                let adapter = std::path::absolute(golden.shared.join("adapter_init"))?;
                let files = ["adapter_model.safetensors", "adapter_config.json"].map(|name| adapter.join(name));
                let data: String = lines.iter().map(|line| format!("{line}\n")).collect();
                Ok(json!({
                    "file": std::path::absolute(&golden.model)?,
                    "init": files,
                    "steps": trajectory.steps(),
                    "train": {
                        "data": data,
                        "batch": lines.len(),
                        "rows": trajectory.rows,
                        "rate": rate.peak,
                        "schedule": "constant",
                        "warmup": 0,
                        "steps": trajectory.steps(),
                        "betas": [adamw.beta1, adamw.beta2],
                        "eps": adamw.eps,
                        "decay": adamw.decay,
                        "clip": clip.unwrap_or(0.0),
                        "shuffle": false,
                    },
                }))
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Logits(golden) => golden.name.clone(),
            Self::Steps(golden, _) => format!("train/{}", golden.name),
        }
    }

    /// Compares what the browser computed. `file` is the path of its file, without the extension.
    fn checks(&self, kind: &str, said: Said, file: &Path) -> Result<Vec<Check>> {
        let Said { losses, norms, after, seconds, .. } = said;
        match self {
            Self::Logits(golden) => {
                let got = npy::floats(&std::fs::read(file.with_extension("f32"))?);
                let bound = if kind == "cpu" { golden.bounds.cpu_logits } else { golden.bounds.gpu_logits };
                Ok(vec![golden.compare("in a browser", &got, bound, Duration::from_secs_f64(seconds))])
            }
            Self::Steps(golden, trajectory) => {
                let last = trajectories::named(&std::fs::read(file.with_extension("safetensors"))?)?;
                let first = std::fs::read(golden.shared.join("adapter_init/adapter_model.safetensors"))?;
                let run = Run { losses, norms, after, last, seconds };
                trajectory.checks(&trajectories::named(&first)?, &run)
            }
        }
    }
}

/// Targets as lines of data have them: -100 for none.
fn signed(targets: &[u32]) -> Vec<i64> {
    targets.iter().map(|&target| if target == train::NO_TARGET { -100 } else { i64::from(target) }).collect()
}

/// Computes the logits of these files and the trajectories of these folders in a browser, and gives
/// each comparison to `take`, with the name of its file and its executor. A software driver trains
/// only where trajectories are asked for.
pub fn run(
    args: &Args,
    browser: &Path,
    goldens: &[super::Golden],
    trained: &[gradients::Golden],
    mut take: impl FnMut(&str, &str, &Check),
) -> Result<()> {
    let folder = root().join(FOLDER);
    ensure!(
        folder.join("js/dist/engine/weft_bg.wasm").exists(),
        "there is no package in {FOLDER}/js/dist; `cargo xtask web` builds it"
    );
    npm::install(&folder)?;
    let out = crate::packages::empty_folder("golden")?;
    let mut jobs = vec![];
    for kind in ["cpu", "gpu"].into_iter().filter(|kind| args.executor.as_deref().is_none_or(|only| only == *kind)) {
        jobs.extend(goldens.iter().map(|golden| (kind, Job::Logits(golden))));
        for golden in trained.iter().filter(|_| kind == "cpu" || args.trajectories) {
            let first = Trajectory::all(golden)?.into_iter().next();
            jobs.extend(first.map(|trajectory| (kind, Job::Steps(golden, Box::new(trajectory)))));
        }
    }
    let job = |(kind, job): &(&str, Job<'_>)| -> Result<Value> {
        let mut request = job.request()?;
        request["device"] = json!(kind);
        Ok(request)
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
        let (kind, job) = jobs.get(said.job).context("the driver names another job")?;
        let checks = match &said.error {
            Some(error) => vec![Check::refused(&anyhow::anyhow!(error.clone()))],
            None => {
                ensure!(said.executor == *kind, "the browser ran on {} instead of {kind}", said.executor);
                let file = out.join(said.job.to_string());
                job.checks(kind, said, &file)?
            }
        };
        checks.iter().for_each(|check| take(&job.name(), kind, check));
        done += 1;
    }
    ensure!(
        driver.wait()?.success() && done == jobs.len(),
        "{FOLDER}/tests/golden.mjs ended after {done} of {} jobs",
        jobs.len()
    );
    Ok(())
}
