//! Goldens: small models against the logits, hidden states and tokens that other implementations gave.

mod adapters;

use crate::npy;
use anyhow::{Context, Result, bail, ensure};
use kernels::{Device, Executor, PlanOptions};
use model::{KvType, Model, ModelFile, Sampling, SessionOptions};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Compares models with the references beside them.
#[derive(clap::Args)]
pub struct Args {
    /// The folder of fixtures.
    #[arg(long)]
    fixtures: PathBuf,
    /// Only folders and files whose path contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only this executor: cpu or gpu.
    #[arg(long)]
    executor: Option<String>,
}

/// The folders that this version runs.
const FOLDERS: [&str; 2] = ["qwen2", "qwen3"];

/// Largest difference of a logit from its reference, per executor, with f32 activations and KV.
const CPU_LOGITS: f64 = 1e-4;
const GPU_LOGITS: f64 = 5e-4;
/// The same with an f16 KV cache.
const F16_KV_LOGITS: f64 = 3e-2;
/// Relative L2 of hidden states.
const HIDDEN: f64 = 5e-5;

pub fn run(args: &Args) -> Result<()> {
    let mut executors = vec![];
    if args.executor.as_deref() != Some("gpu") {
        executors.push(Executor::Cpu);
    }
    if args.executor.as_deref() != Some("cpu") {
        executors.push(Executor::Gpu(Device::auto()?));
    }
    let (mut rows, mut failed) = (0, 0);
    println!("{:<26} {:<5} {:<22} {:>10} {:>8}  {:>7}", "file", "on", "mode", "worst", "bound", "seconds");
    for folder in FOLDERS {
        let dir = args.fixtures.join(folder);
        let meta = json(&dir.join("meta.json"))?;
        if let Ok(text) = std::fs::read_to_string(dir.join("tok_golden.json")) {
            let file = Model::open(dir.join(format!("{folder}-F16.gguf")))?;
            let n = model::tokenizer::golden::check(file.tokenizer(), &text)?;
            println!("{folder}: {n} tokenisations equal");
        }
        for entry in meta["files"].as_array().context("meta.json has no files")? {
            let name = entry["gguf"].as_str().context("a file without a name")?;
            if !format!("{folder}/{name}").contains(&args.only) {
                continue;
            }
            let reference = npy::read_f32(&dir.join(entry["logits"].as_str().context("a file without logits")?))?;
            let golden = Golden { dir: &dir, meta: &meta, name, reference, hidden: name.ends_with("F16.gguf") };
            for executor in &executors {
                for check in golden.run(executor)? {
                    rows += 1;
                    failed += usize::from(!check.passes());
                    println!("{name:<26} {:<5} {check}", executor.kind());
                }
            }
        }
    }
    adapters::run(args, &executors, |name, executor, check| {
        rows += 1;
        failed += usize::from(!check.passes());
        println!("{name:<26} {:<5} {check}", executor.kind());
    })?;
    ensure!(rows > 0, "no fixture matches {:?} in {}", args.only, args.fixtures.display());
    println!("{} passed, {failed} failed", rows - failed);
    if failed > 0 {
        bail!("{failed} goldens failed");
    }
    Ok(())
}

fn json(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn ids(value: &Value) -> Result<Vec<u32>> {
    let list = value.as_array().context("not a list of ids")?;
    list.iter().map(|v| v.as_u64().map(|v| v as u32).context("not an id")).collect()
}

/// One comparison: the worst difference, its bound, and whether the best tokens agree.
struct Check {
    mode: String,
    worst: f64,
    bound: f64,
    agrees: bool,
    seconds: f64,
}

impl Check {
    fn passes(&self) -> bool {
        self.agrees && self.worst <= self.bound
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = match (self.passes(), self.agrees) {
            (true, _) => "",
            (_, false) => "  FAILED: other best tokens",
            _ => "  FAILED",
        };
        write!(f, "{:<22} {:>10.2e} {:>8.0e}  {:>7.2}{verdict}", self.mode, self.worst, self.bound, self.seconds)
    }
}

struct Golden<'a> {
    dir: &'a Path,
    meta: &'a Value,
    name: &'a str,
    reference: npy::Array,
    hidden: bool,
}

impl Golden<'_> {
    fn run(&self, executor: &Executor) -> Result<Vec<Check>> {
        let file: ModelFile = Model::open(self.dir.join(self.name))?;
        let model = Arc::new(file.on(executor.clone())?);
        let exact = if matches!(executor, Executor::Cpu) { CPU_LOGITS } else { GPU_LOGITS };
        let plan = PlanOptions::default;
        let base = |chunk: u32, plan: PlanOptions| SessionOptions { chunk, kv: KvType::F32, plan, ..SessionOptions::default() };
        let taps = PlanOptions { taps: vec!["embed".into(), "layer_out".into(), "output_norm".into()], ..plan() };
        let mut checks = vec![
            self.logits(&model, "one prefill", base(512, plan()), exact)?,
            self.logits(&model, "chunks of 7", base(7, plan()), exact)?,
            self.logits(&model, "token by token", base(1, plan()), exact)?,
            self.logits(&model, "tapped", base(512, taps.clone()), exact)?,
        ];
        if matches!(executor, Executor::Gpu(_)) {
            checks.push(self.logits(&model, "unfused", base(64, PlanOptions { unfused: true, ..plan() }), exact)?);
            checks.push(self.logits(&model, "portable", base(64, PlanOptions { portable: true, ..plan() }), exact)?);
            let token = PlanOptions { portable: true, unfused: true, ..plan() };
            checks.push(self.logits(&model, "portable, by token", base(1, token), exact)?);
        }
        let f16 = SessionOptions { kv: KvType::F16, ..base(64, plan()) };
        checks.push(self.logits(&model, "f16 KV", f16, F16_KV_LOGITS)?);
        if self.hidden {
            checks.push(self.hidden(&model, base(64, taps))?);
            checks.push(self.greedy(&model, base(32, plan()))?);
        }
        Ok(checks)
    }

    fn logits(&self, model: &Arc<Model>, mode: &str, options: SessionOptions, bound: f64) -> Result<Check> {
        let start = Instant::now();
        let mut session = model.session(options)?;
        session.feed(&ids(&self.meta["ids"])?)?;
        let mut got = vec![];
        session.logits(|_, rows, _| got.extend_from_slice(rows))?;
        ensure!(got.len() == self.reference.values.len(), "{} logits, the reference has {}", got.len(), self.reference.values.len());
        let pairs = got.iter().zip(&self.reference.values);
        let worst = pairs.map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max);
        let vocabulary = self.reference.shape[1];
        let mut rows = got.chunks_exact(vocabulary).zip(self.reference.values.chunks_exact(vocabulary));
        let agrees = rows.all(|(got, expected)| same_best(got, expected, bound));
        Ok(Check { mode: mode.to_string(), worst, bound, agrees, seconds: start.elapsed().as_secs_f64() })
    }

    /// Entry 0 is the embedding, entry i the output of layer i - 1, the last entry what follows the final norm.
    fn hidden(&self, model: &Arc<Model>, options: SessionOptions) -> Result<Check> {
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
            ensure!(got.len() == expected.len(), "a tap of {} values, the reference has {}", got.len(), expected.len());
            worst = worst.max(cpu_ref::nmse(expected, got).sqrt());
        }
        Ok(Check { mode: "hidden states".into(), worst, bound: HIDDEN, agrees: true, seconds: start.elapsed().as_secs_f64() })
    }

    fn greedy(&self, model: &Arc<Model>, options: SessionOptions) -> Result<Check> {
        let start = Instant::now();
        let prefix = self.meta["greedy_prefix_len"].as_u64().context("greedy_prefix_len")? as usize;
        let expected = ids(&self.meta["greedy"])?;
        let mut session = model.session(options)?;
        session.feed(&ids(&self.meta["ids"])?[..prefix])?;
        let generate = model::GenerateOptions {
            sampling: Sampling::greedy(),
            max_tokens: Some(expected.len()),
            ignore_end: true,
            ..model::GenerateOptions::default()
        };
        let got = session.generate_with(generate)?.map(|t| t.map(|t| t.id)).collect::<Result<Vec<_>, _>>()?;
        let agrees = got == expected;
        Ok(Check { mode: "greedy continuation".into(), worst: 0.0, bound: 0.0, agrees, seconds: start.elapsed().as_secs_f64() })
    }
}

/// Whether the best token is the same, where the reference's margin is more than twice what rounding may move.
fn same_best(got: &[f32], expected: &[f32], bound: f64) -> bool {
    let best = |row: &[f32]| cpu_ref::argmax(row) as usize;
    let (a, b) = (best(got), best(expected));
    let margin = f64::from(expected[b] - expected[a]);
    a == b || (bound > GPU_LOGITS && margin <= 2.0 * bound)
}
