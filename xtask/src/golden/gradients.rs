//! Goldens of gradients: the losses and derivatives that PyTorch computed in float64 for models
//! with low-rank factors.

use super::adapters::folder_and_file;
use super::{Args, Check, ids, json};
use crate::npy;
use anyhow::{Context, Result, ensure};
use kernels::{Executor, Watch};
use model::{AdapterFile, FactorPair, Model};
use safetensors::SafeTensors;
use std::path::Path;
use std::time::Instant;
use train::{Capture, Checkpointing, Document, GradientOptions, Gradients, Loss, Parameter, Trained};

/// The largest relative difference of the loss, and of the norm of all gradients.
const LOSS: f64 = 1e-5;
const NORM: f64 = 1e-4;
/// The largest relative L2 difference of the gradient of one tensor, and of the derivative by the
/// input of the first layer.
const GRADIENT: f64 = 1e-4;

/// How a batch runs: its name, rows of a step, checkpointing.
const MODES: [(&str, u32, Checkpointing); 3] = [
    ("gradients, one step", 128, Checkpointing::None),
    ("gradients, two steps", 64, Checkpointing::None),
    ("gradients, by layers", 128, Checkpointing::Layer),
];

/// Runs one folder of `train` on these executors.
pub fn run(args: &Args, name: &str, executors: &[Executor], report: impl Fn(&str, &Executor, &Check)) -> Result<()> {
    let (train, (folder, file)) = (args.fixtures()?.join("train"), folder_and_file(name));
    let adapter = AdapterFile::open(train.join(folder).join("adapter_init"))?.factors()?;
    let golden = Golden { own: &train.join(name), batch: &train.join(folder).join("batch.json"), adapter };
    for executor in executors {
        let model = Model::open(args.fixtures()?.join(folder).join(&file))?.on(executor.clone())?;
        for check in golden.checks(&model)? {
            report(&format!("train/{name}"), executor, &check);
        }
    }
    Ok(())
}

struct Golden<'a> {
    own: &'a Path,
    batch: &'a Path,
    adapter: Vec<FactorPair>,
}

impl Golden<'_> {
    fn checks(&self, model: &Model) -> Result<Vec<Check>> {
        let (documents, expected) = (self.documents()?, json(&self.own.join("golden.json"))?);
        let (mut checks, mut first): (_, Option<(Loss, Vec<Parameter>)>) = (vec![], None);
        for (mode, rows, checkpointing) in MODES {
            let start = Instant::now();
            let options = GradientOptions::default().rows(rows).checkpointing(checkpointing).captures(vec![Capture::gradient("embed")]);
            let mut gradients = Gradients::new(model, &Trained::Factors(self.adapter.clone()), &options)?;
            // Rows behind the step, and values that nobody made yet, must not change any result.
            gradients.poison(u32::MAX);
            let loss = gradients.compute(&documents, Watch::default())?;
            let got = gradients.gradients()?;
            let seconds = start.elapsed().as_secs_f64();
            let mut take = |what: &str, worst: f64, bound: f64| {
                checks.push(Check { mode: format!("{mode}{what}"), worst, bound, agrees: true, kl: None, flips: None, seconds });
            };
            take(": loss", relative(loss.loss, expected["loss"].as_f64().context("golden.json has no loss")?), LOSS);
            let norm = squares(got.iter().flat_map(|parameter| parameter.values.iter().copied())).sqrt();
            take(": norm", relative(norm, expected["grad_global_norm"].as_f64().context("golden.json has no norm")?), NORM);
            take(": worst", self.worst(model.summary().architecture, &got)?, GRADIENT);
            take(": h0", self.embedding(&loss, documents.len())?, GRADIENT);
            match &first {
                None => first = Some((loss, got)),
                // Computing layers again changes no bit.
                Some(first) if rows == MODES[0].1 => take(": bits", f64::from(u8::from(!same_bits(first, &(loss, got)))), 0.0),
                Some(_) => {}
            }
        }
        Ok(checks)
    }

    fn documents(&self) -> Result<Vec<Document>> {
        let batch = json(self.batch)?;
        let lists = |name: &str| batch[name].as_array().with_context(|| format!("batch.json has no {name}"));
        let document = |(sequence, targets): (_, &serde_json::Value)| -> Result<Document> {
            let targets = targets.as_array().context("targets are no list")?;
            let targets = targets.iter().map(|t| t.as_u64().map_or(train::NO_TARGET, |t| t as u32)).collect();
            Ok(Document { ids: ids(sequence)?, targets, weights: vec![] })
        };
        lists("sequences")?.iter().zip(lists("targets")?).map(document).collect()
    }

    /// The largest relative L2 difference of a tensor.
    fn worst(&self, architecture: &str, got: &[Parameter]) -> Result<f64> {
        let bytes = std::fs::read(self.own.join("grads.safetensors"))?;
        let file = SafeTensors::deserialize(&bytes)?;
        let mut worst = 0.0f64;
        for parameter in got {
            let name = parameter.peft_name(architecture).with_context(|| format!("{} has no name in PEFT", parameter.name))?;
            let tensor = file.tensor(&name)?;
            let expected: Vec<f32> = tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            worst = worst.max(apart(&parameter.values, &expected)?);
        }
        ensure!(got.len() == file.len(), "{} gradients, the reference has {}", got.len(), file.len());
        Ok(worst)
    }

    fn embedding(&self, loss: &Loss, documents: usize) -> Result<f64> {
        let mut expected = vec![];
        for n in 0..documents {
            expected.extend(npy::read_f32(&self.own.join(format!("grad_h0_{n}.npy")))?.values);
        }
        apart(embedding(loss), &expected)
    }
}

fn relative(got: f64, expected: f64) -> f64 {
    (got - expected).abs() / expected.abs()
}

fn squares(values: impl Iterator<Item = f32>) -> f64 {
    values.map(|v| f64::from(v).powi(2)).sum()
}

/// The relative L2 difference; infinite for values that are no numbers.
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
