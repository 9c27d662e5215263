//! Goldens: compares small models with the logits, hidden states and tokens of other
//! implementations.

mod adapters;
mod args;
mod browser;
mod check;
mod fast;
mod fixtures;
mod gradients;
mod nodes;
mod trajectories;

use crate::{lanes, npy};
use anyhow::{Context, Result, ensure};
use args::Activations;
pub use args::Args;
use check::{Check, same_best};
use fixtures::{FOLDERS, ids, json};
use kernels::testing::Switches;
use kernels::{Device, Executor, PlanOptions, Precision};
use model::{KvType, Model, ModelFile, Sampling, SessionOptions, Tapped};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The largest allowed differences from the references.
#[derive(Copy, Clone)]
struct Bounds {
    /// A logit, with f32 activations and KV: on the CPU, on a GPU.
    cpu_logits: f64,
    gpu_logits: f64,
    /// A logit with an f16 KV cache.
    f16_kv_logits: f64,
    /// Relative L2 of a hidden state.
    hidden: f64,
}

const BOUNDS: Bounds = Bounds { cpu_logits: 1e-4, gpu_logits: 5e-4, f16_kv_logits: 3e-2, hidden: 5e-5 };

/// Wider bounds, by prefix of the model's name, for models whose float32 and float64 results differ
/// more.
const WIDER: [(&str, Bounds); 1] =
    [("gemma4", Bounds { cpu_logits: 5e-4, gpu_logits: 2e-3, f16_kv_logits: 1e-1, hidden: 2e-4 })];

/// The folders of the requested fixtures, then the folders of this repository.
fn folders(fixtures: &Path) -> Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> = FOLDERS.iter().map(|name| fixtures.join(name)).collect();
    let own = crate::workspace::root().join("tests/goldens");
    let mut found: Vec<PathBuf> = match own.exists() {
        true => std::fs::read_dir(&own)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?,
        false => vec![],
    };
    found.retain(|dir| dir.join("meta.json").exists());
    found.sort();
    all.extend(found);
    Ok(all)
}

/// One unit of work of a thread.
enum Job {
    /// A model of `train` with its adapter.
    Adapter(String),
    Gradients(gradients::Golden),
    File(Golden),
    /// A file without references, whose operations are compared.
    Model(PathBuf),
}

/// The requested executors. Each thread opens its own device, because a software driver runs one
/// device on one thread.
fn executors(args: &Args) -> Result<Vec<Executor>> {
    let mut executors = vec![];
    if args.executor.as_deref() != Some("gpu") && args.precision == Activations::F32 && !args.nodes {
        executors.push(Executor::Cpu);
    }
    if args.executor.as_deref() != Some("cpu") {
        executors.push(Executor::Gpu(Device::auto()?));
    }
    ensure!(
        !executors.is_empty(),
        "the CPU executor is the reference of --nodes and is f32 whatever is asked: both need --executor gpu"
    );
    Ok(executors)
}

pub fn run(args: &Args) -> Result<()> {
    println!("{:<26} {:<5} {:<22} {:>10} {:>8}  {:>7}", "file", "on", "mode", "worst", "bound", "seconds");
    if let Some(browser) = &args.browser {
        return run_in(browser, args);
    }
    let mut jobs = vec![];
    // What adapters add is compared in f32: how far rounding moves logits is a matter of the model.
    if args.precision == Activations::F32 && !args.nodes {
        jobs.extend(adapters::names(args)?.into_iter().map(Job::Adapter));
    }
    if !args.nodes {
        jobs.extend(gradients::goldens(args)?.into_iter().map(Job::Gradients));
    }
    match &args.model {
        Some(path) => jobs.push(Job::Model(path.clone())),
        None => jobs.extend(goldens(args)?.into_iter().map(Job::File)),
    }
    let tally = Mutex::new(Tally::default());
    let take = |name: &str, executor: &Executor, check: &Check| {
        tally.lock().unwrap_or_else(PoisonError::into_inner).take(name, executor.kind(), check);
    };
    let work = |executors: &mut Vec<Executor>, job: &Job| -> Result<()> {
        match job {
            Job::Adapter(name) => adapters::run(args, name, executors, take)?,
            Job::Gradients(golden) => golden.run(executors, args, take)?,
            Job::File(golden) => {
                golden.tokenisations()?;
                for executor in executors {
                    let checks = golden.run(executor, args).unwrap_or_else(|error| vec![Check::refused(&error)]);
                    checks.iter().for_each(|check| take(&golden.name, executor, check));
                }
            }
            Job::Model(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                for executor in executors.iter() {
                    let Executor::Gpu(device) = executor else { unreachable!("--nodes compares a GPU") };
                    nodes::Nodes::random(path, args)?.each(device, &mut |check| take(&name, executor, &check))?;
                }
            }
        }
        Ok(())
    };
    lanes::each(lanes::cores(), &jobs, || executors(args), work)?;
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    let what = format!("no fixture matches {:?}, or this device rounds no gradients", args.only);
    ensure!(tally.rows > 0, "nothing to compare: {what}");
    tally.end()
}

/// The folder of `train` that a browser trains if no others are asked for.
const BROWSER_TRAINS: &str = "qwen2";

/// The requested files in a browser; one of each folder unless all are asked for.
fn run_in(browser: &Path, args: &Args) -> Result<()> {
    let mut all = goldens(args)?;
    all.retain(|golden| args.all || golden.original);
    let mut trained = gradients::goldens(args)?;
    trained.retain(|golden| golden.shared == golden.folder && (args.trajectories || golden.name == BROWSER_TRAINS));
    ensure!(!(all.is_empty() && trained.is_empty()), "nothing to compare: no fixture matches {:?}", args.only);
    let mut tally = Tally::default();
    browser::run(args, browser, &all, &trained, |name, executor, check| tally.take(name, executor, check))?;
    tally.end()
}

/// The number of comparisons, and of failed comparisons.
#[derive(Default)]
struct Tally {
    rows: usize,
    failed: usize,
}

impl Tally {
    fn take(&mut self, name: &str, executor: &str, check: &Check) {
        self.rows += 1;
        self.failed += usize::from(!check.passes());
        println!("{name:<26} {executor:<5} {check}");
    }

    /// Prints the sums. A failure is an error.
    fn end(&self) -> Result<()> {
        let Self { rows, failed } = self;
        println!("{} passed, {failed} failed", rows - failed);
        ensure!(*failed == 0, "{failed} goldens failed");
        Ok(())
    }
}

/// The requested files, with their references.
fn goldens(args: &Args) -> Result<Vec<Golden>> {
    let mut all = vec![];
    for dir in folders(args.fixtures()?)? {
        let folder = dir.file_name().and_then(|name| name.to_str()).context("a folder without a name")?;
        let meta = Arc::new(json(&dir.join("meta.json"))?);
        let bounds = WIDER.iter().find(|(name, _)| folder.starts_with(name)).map_or(BOUNDS, |(_, bounds)| *bounds);
        for entry in meta["files"].as_array().context("meta.json has no files")? {
            let name = entry["gguf"].as_str().context("an entry of meta.json has no gguf name")?.to_string();
            if format!("{folder}/{name}").contains(&args.only) {
                let reference =
                    npy::read_f32(&dir.join(entry["logits"].as_str().context("an entry of meta.json has no logits")?))?;
                let original = name.ends_with("F16.gguf");
                all.push(Golden { dir: dir.clone(), meta: Arc::clone(&meta), name, reference, bounds, original });
            }
        }
    }
    Ok(all)
}

struct Golden {
    dir: PathBuf,
    meta: Arc<Value>,
    name: String,
    reference: npy::Array,
    bounds: Bounds,
    /// True if the weights are the checkpoint's weights. The hidden states and the continuation are
    /// stored for these only.
    original: bool,
}

impl Golden {
    fn tokenisations(&self) -> Result<()> {
        let path = self.dir.join("tok_golden.json");
        if self.original && path.exists() {
            let file = Model::open(self.dir.join(&self.name))?;
            let n = model::tokenizer::golden::check(file.tokenizer(), &std::fs::read_to_string(path)?)?;
            println!("{}: {n} tokenisations equal", self.name);
        }
        Ok(())
    }

    fn run(&self, executor: &Executor, args: &Args) -> Result<Vec<Check>> {
        match (executor, args.precision()) {
            (Executor::Gpu(device), _) if args.nodes => {
                let (path, pattern, mut checks) = (self.dir.join(&self.name), ids(&self.meta["ids"])?, vec![]);
                nodes::Nodes::of(&path, pattern, args).each(device, &mut |check| checks.push(check))?;
                return Ok(checks);
            }
            (Executor::Gpu(device), Precision::Fast) => return self.run_fast(device),
            _ => {}
        }
        let file: ModelFile = Model::open(self.dir.join(&self.name))?;
        let model = file.on(executor.clone())?;
        let exact = if matches!(executor, Executor::Cpu) { self.bounds.cpu_logits } else { self.bounds.gpu_logits };
        let plan = PlanOptions::plain;
        let base = |chunk: u32, plan: PlanOptions| SessionOptions::default().chunk(chunk).kv(KvType::F32).plan(plan);
        let taps = plan().taps(vec!["embed".into(), "layer_out".into(), "output_norm".into()]);
        // Short chunks are slow, because a matrix product computes tiles of 64 rows. Chunks of 7
        // are tested only with the original weights: the ends of chunks are independent of the
        // storage of weights.
        let chunk = if self.original { 7 } else { 29 };
        let mut checks = vec![
            self.logits(&model, "one prefill", base(512, plan()), exact)?,
            self.logits(&model, &format!("chunks of {chunk}"), base(chunk, plan()), exact)?,
            self.logits(&model, "token by token", base(1, plan()), exact)?,
            self.logits(&model, "tapped", base(512, taps.clone()), exact)?,
        ];
        if matches!(executor, Executor::Gpu(_)) {
            checks.push(self.logits(&model, "unfused", base(64, plan().unfused(true)), exact)?);
        }
        // Under WEFT_LIMITS=webgpu all kernels are the portable ones; their unfused forms are
        // compared here.
        if matches!(executor, Executor::Gpu(device) if !device.caps().subgroups) && self.original {
            checks.push(self.logits(&model, "unfused, by token", base(1, plan().unfused(true)), exact)?);
        }
        let f16 = base(64, plan()).kv(KvType::F16);
        checks.push(self.logits(&model, "f16 KV", f16, self.bounds.f16_kv_logits)?);
        if self.original {
            checks.push(self.hidden(&model, base(64, taps))?);
            checks.push(self.greedy(&model, base(32, plan()))?);
        }
        Ok(checks)
    }

    /// The logits of the whole prompt.
    fn evaluate(&self, model: &Model, options: SessionOptions) -> Result<Vec<f32>> {
        self.evaluate_tapped(model, options, |_, _| {})
    }

    /// The logits of the whole prompt. `each` gets the number of rows of a chunk with every tap of
    /// the chunk.
    fn evaluate_tapped(
        &self,
        model: &Model,
        options: SessionOptions,
        mut each: impl FnMut(usize, &Tapped),
    ) -> Result<Vec<f32>> {
        let mut session = model.session(options)?;
        session.feed(&ids(&self.meta["ids"])?)?;
        let (mut got, vocabulary) = (vec![], model.summary().vocabulary as usize);
        session.logits(|_, rows, taps| {
            taps.iter().for_each(|tap| each(rows.len() / vocabulary, tap));
            got.extend_from_slice(rows);
        })?;
        ensure!(
            got.len() == self.reference.values.len(),
            "got {} logits, the reference has {}",
            got.len(),
            self.reference.values.len()
        );
        Ok(got)
    }

    fn logits(&self, model: &Model, mode: &str, options: SessionOptions, bound: f64) -> Result<Check> {
        let start = Instant::now();
        let got = self.evaluate(model, options)?;
        Ok(self.compare(mode, &got, bound, start.elapsed()))
    }

    /// Compares the logits of the whole prompt with the reference.
    fn compare(&self, mode: &str, got: &[f32], bound: f64, took: Duration) -> Check {
        let pairs = got.iter().zip(&self.reference.values);
        let worst = pairs.map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max);
        let vocabulary = self.reference.shape[1];
        let mut rows = got.chunks_exact(vocabulary).zip(self.reference.values.chunks_exact(vocabulary));
        let agrees = rows.all(|(got, expected)| same_best(got, expected, bound, self.bounds.gpu_logits));
        let (mode, seconds) = (mode.to_string(), took.as_secs_f64());
        Check { mode, worst, bound, agrees, kl: None, flips: None, seconds }
    }

    /// Entry 0 is the embedding, entry i the output of layer i - 1, and the last entry the output
    /// of the final norm.
    fn hidden(&self, model: &Model, options: SessionOptions) -> Result<Check> {
        let start = Instant::now();
        let reference = npy::read_f32(&self.dir.join("hf_hidden_f32.npy"))?;
        let (entries, rows, width) = (reference.shape[0], reference.shape[1], reference.shape[2]);
        let mut session = model.session(options)?;
        session.feed(&ids(&self.meta["ids"])?)?;
        let mut got = vec![vec![]; entries];
        session.logits(|_, _, taps| {
            for tap in taps {
                let entry = match tap.name.as_str() {
                    "embed" => 0,
                    "output_norm" => entries - 1,
                    _ => tap.layer as usize + 1,
                };
                if entry < entries - 1 || tap.name == "output_norm" {
                    got[entry].extend_from_slice(&tap.values);
                }
            }
        })?;
        let mut worst = 0.0_f64;
        for (got, expected) in got.iter().zip(reference.values.chunks_exact(rows * width)) {
            ensure!(
                got.len() == expected.len(),
                "a tap has {} values, the reference has {}",
                got.len(),
                expected.len()
            );
            worst = worst.max(cpu_ref::nmse(expected, got).sqrt());
        }
        Ok(Check {
            mode: "hidden states".into(),
            worst,
            bound: self.bounds.hidden,
            agrees: true,
            kl: None,
            flips: None,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    fn greedy(&self, model: &Model, options: SessionOptions) -> Result<Check> {
        let start = Instant::now();
        let prefix = self.meta["greedy_prefix_len"].as_u64().context("greedy_prefix_len")? as usize;
        let expected = ids(&self.meta["greedy"])?;
        let mut session = model.session(options)?;
        session.feed(&ids(&self.meta["ids"])?[..prefix])?;
        let generate = model::GenerateOptions::default()
            .sampling(Sampling::greedy())
            .max_tokens(Some(expected.len()))
            .ignore_end(true);
        let got = session.generate_with(generate)?.map(|t| t.map(|t| t.id)).collect::<Result<Vec<_>, _>>()?;
        let agrees = got == expected;
        Ok(Check {
            mode: "greedy continuation".into(),
            worst: 0.0,
            bound: 0.0,
            agrees,
            kl: None,
            flips: None,
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}
