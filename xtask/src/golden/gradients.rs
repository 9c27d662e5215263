//! Goldens of gradients: the losses and derivatives that PyTorch computed in float64 for models
//! with low-rank factors, and for all weights of a model.

use super::args::Args;
use super::check::Check;
use super::fixtures::{FOLDERS, ids, json};
use super::trajectories;
use crate::npy;
use anyhow::{Context, Result, ensure};
use kernels::{Class, Executor, Precision, Watch};
use model::{AdapterFile, Model};
use safetensors::SafeTensors;
use std::path::PathBuf;
use std::time::Instant;
use train::{Capture, Checkpointing, Document, GradientOptions, Gradients, Loss, Parameter, Trained};

/// The largest relative difference of the loss, and of the norm of all gradients.
const LOSS: f64 = 1e-5;
const NORM: f64 = 1e-4;
/// The largest relative L2 difference of the gradient of one tensor, and of the derivative by the
/// input of the first layer.
const GRADIENT: f64 = 1e-4;

/// The largest differences, loss and norm relative, tensors in relative L2.
#[derive(Copy, Clone)]
struct Bounds {
    loss: f64,
    norm: f64,
    gradient: f64,
}

/// With operands in f16, the largest difference of the gradient of a tensor.
const FAST: f64 = 5e-3;

/// With operands in f16, the largest difference of the gradient of a tensor for folders whose names
/// begin so, with the reason.
const FAST_WIDER: [(&str, f64, &str); 2] = [
    ("gemma4e", 1e-2, "measured 9.4e-3 in Q4_K_M (NVIDIA H100)"),
    (
        "gemma3n",
        1.2e-1,
        "values 3e-5 deviations from the cut-off of its sparse activation change sides; measured 5.8e-2 (NVIDIA H100)",
    ),
];

impl Bounds {
    /// The bounds of a folder.
    fn of(folder: &str, precision: Precision) -> Self {
        let wider =
            FAST_WIDER.iter().find(|(prefix, ..)| folder.starts_with(prefix)).map_or(FAST, |(_, bound, _)| *bound);
        match precision {
            Precision::F32 => Self { loss: LOSS, norm: NORM, gradient: GRADIENT },
            Precision::Fast => Self { loss: FAST, norm: FAST, gradient: wider },
        }
    }
}

/// How a batch runs: its name, rows of a step, checkpointing.
const MODES: [(&str, u32, Checkpointing); 3] = [
    ("gradients, one step", 128, Checkpointing::None),
    ("gradients, two steps", 64, Checkpointing::None),
    ("gradients, by layers", 128, Checkpointing::Layer),
];

/// One folder of `train`: a loss and its gradients.
pub struct Golden {
    pub folder: PathBuf,
    pub name: String,
    /// The folder with the adapter and the batch: this one, or that of the same model in F16.
    pub shared: PathBuf,
    pub model: PathBuf,
    /// True for a folder of this repository.
    own: bool,
}

/// The requested folders: those of the fixtures whose models this version runs, then those of this
/// repository.
pub fn goldens(args: &Args) -> Result<Vec<Golden>> {
    let mut all = vec![];
    for (root, own) in [(args.fixtures()?.to_path_buf(), false), (crate::workspace::root().join("tests/goldens"), true)]
    {
        let train = root.join("train");
        let entries = std::fs::read_dir(&train).with_context(|| format!("cannot read {}", train.display()))?;
        let mut folders = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        folders.retain(|folder| folder.join("golden.json").exists());
        folders.sort();
        for folder in folders {
            let name =
                folder.file_name().and_then(|name| name.to_str()).context("a folder without a name")?.to_string();
            let base = json(&folder.join("golden.json"))?["base_gguf"]
                .as_str()
                .context("golden.json has no base_gguf")?
                .to_string();
            let runs = own || FOLDERS.iter().any(|known| base.starts_with(&format!("{known}/")));
            if !runs || !format!("train/{name}").contains(&args.only) {
                continue;
            }
            let shared = match folder.join("batch.json").exists() {
                true => folder.clone(),
                false => train.join(name.split('-').next().unwrap_or_default()),
            };
            all.push(Golden { folder, name, shared, model: root.join(base), own });
        }
    }
    Ok(all)
}

impl Golden {
    /// Compares on these executors.
    pub fn run(&self, executors: &[Executor], args: &Args, report: impl Fn(&str, &Executor, &Check)) -> Result<()> {
        let precision = args.precision();
        for executor in executors {
            // Other devices round nothing: they have the results of f32.
            let rounds = matches!(executor, Executor::Gpu(device) if device.caps().cooperative);
            if precision == Precision::Fast && !rounds {
                continue;
            }
            let model = Model::open(&self.model)?.on(executor.clone())?;
            // Of this repository's folders a GPU runs the first mode only: the fixtures run the
            // others there.
            let modes = if self.own && matches!(executor, Executor::Gpu(_)) { 1 } else { MODES.len() };
            let mut checks = self.checks(&model, precision, &MODES[..modes])?;
            let is_slow = matches!(executor, Executor::Gpu(device) if device.adapter().class == Class::Software);
            if precision == Precision::F32 && (self.own || args.trajectories || !is_slow) {
                checks.extend(trajectories::checks(self, &model)?);
            }
            checks.iter().for_each(|check| report(&format!("train/{}", self.name), executor, check));
        }
        Ok(())
    }

    fn checks(&self, model: &Model, precision: Precision, modes: &[(&str, u32, Checkpointing)]) -> Result<Vec<Check>> {
        let (documents, expected) = (self.documents()?, json(&self.folder.join("golden.json"))?);
        let (trained, mut checks, mut first): (_, _, Option<(Loss, Vec<Parameter>)>) =
            (self.trained(model)?, vec![], None);
        let bounds = Bounds::of(&self.name, precision);
        for &(mode, rows, checkpointing) in modes {
            let start = Instant::now();
            let options = GradientOptions::default().rows(rows).precision(precision).checkpointing(checkpointing);
            let options = options.captures(vec![Capture::gradient("embed")]);
            let mut gradients = Gradients::new(model, &trained, &options)?;
            // Rows behind the step, and values that no dispatch has written yet, must not change
            // any result.
            gradients.poison(u32::MAX);
            let loss = gradients.compute(&documents, Watch::default())?;
            let got = gradients.gradients()?;
            let seconds = start.elapsed().as_secs_f64();
            let mut take = |what: &str, worst: f64, bound: f64| {
                checks.push(Check {
                    mode: format!("{mode}{what}"),
                    worst,
                    bound,
                    agrees: true,
                    kl: None,
                    flips: None,
                    seconds,
                });
            };
            take(
                ": loss",
                relative(loss.loss, expected["loss"].as_f64().context("golden.json has no loss")?),
                bounds.loss,
            );
            let norm = squares(got.iter().flat_map(|parameter| parameter.values.iter().copied())).sqrt();
            take(
                ": norm",
                relative(norm, expected["grad_global_norm"].as_f64().context("golden.json has no norm")?),
                bounds.norm,
            );
            take(": worst", self.worst(model.summary().architecture, &got)?, bounds.gradient);
            take(": h0", self.embedding(&loss, documents.len())?, bounds.gradient);
            match &first {
                None => first = Some((loss, got)),
                // Computing layers again changes no bit.
                Some(first) if rows == MODES[0].1 => {
                    take(": bits", f64::from(u8::from(!same_bits(first, &(loss, got)))), 0.0)
                }
                Some(_) => {}
            }
        }
        Ok(checks)
    }

    /// The factors of the adapter, or all weights for a folder without one.
    pub fn trained(&self, model: &Model) -> Result<Trained> {
        let adapter = self.shared.join("adapter_init");
        Ok(match adapter.exists() {
            true => Trained::Factors(AdapterFile::open(adapter)?.factors()?),
            false => Trained::all_weights(model),
        })
    }

    pub fn documents(&self) -> Result<Vec<Document>> {
        let batch = json(&self.shared.join("batch.json"))?;
        let count = batch["sequences"].as_array().context("batch.json has no sequences")?.len();
        let document = |n: usize| -> Result<Document> {
            let targets = batch["targets"][n].as_array().context("targets are no list")?;
            let targets = targets.iter().map(|t| t.as_u64().map_or(train::NO_TARGET, |t| t as u32)).collect();
            // Without weights, each target has the weight 1.
            let weights = batch["weights"][n].as_array().into_iter().flatten();
            let weights =
                weights.map(|w| Ok(w.as_f64().context("a weight is not finite")? as f32)).collect::<Result<_>>()?;
            Ok(Document { ids: ids(&batch["sequences"][n])?, targets, weights, ..Document::default() })
        };
        (0..count).map(document).collect()
    }

    /// The largest relative L2 difference of a tensor.
    fn worst(&self, architecture: &str, got: &[Parameter]) -> Result<f64> {
        let bytes = std::fs::read(self.folder.join("grads.safetensors"))?;
        let file = SafeTensors::deserialize(&bytes)?;
        let mut worst = 0.0f64;
        for parameter in got {
            let name =
                parameter.peft_name(architecture).with_context(|| format!("{} has no name in PEFT", parameter.name))?;
            let tensor = file.tensor(&name)?;
            let expected: Vec<f32> =
                tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            worst = worst.max(apart(&parameter.values, &expected)?);
        }
        ensure!(got.len() == file.len(), "{} gradients, the reference has {}", got.len(), file.len());
        Ok(worst)
    }

    fn embedding(&self, loss: &Loss, documents: usize) -> Result<f64> {
        let mut expected = vec![];
        for n in 0..documents {
            expected.extend(npy::read_f32(&self.folder.join(format!("grad_h0_{n}.npy")))?.values);
        }
        apart(embedding(loss), &expected)
    }
}

pub fn relative(got: f64, expected: f64) -> f64 {
    (got - expected).abs() / expected.abs()
}

fn squares(values: impl Iterator<Item = f32>) -> f64 {
    values.map(|v| f64::from(v).powi(2)).sum()
}

/// The relative L2 difference; infinite for values that are not finite.
fn apart(got: &[f32], expected: &[f32]) -> Result<f64> {
    ensure!(got.len() == expected.len(), "{} elements, the reference has {}", got.len(), expected.len());
    let wrong = squares(got.iter().zip(expected).map(|(a, b)| a - b)).sqrt();
    let apart = wrong / squares(expected.iter().copied()).sqrt();
    Ok(if apart.is_finite() { apart } else { f64::INFINITY })
}

/// The derivatives by the input of the first layer.
fn embedding(loss: &Loss) -> &[f32] {
    &loss.captures[0].values
}

fn same_bits(a: &(Loss, Vec<Parameter>), b: &(Loss, Vec<Parameter>)) -> bool {
    let bits = |(loss, gradients): &(Loss, Vec<Parameter>)| -> Vec<u32> {
        let values = gradients.iter().flat_map(|parameter| &parameter.values);
        loss.each.iter().chain(embedding(loss)).chain(values).map(|v| v.to_bits()).collect()
    };
    bits(a) == bits(b)
}
