//! Goldens of training: the losses, norms and final parameters of ten steps of PyTorch's AdamW.

use super::check::Check;
use super::fixtures::json;
use super::gradients::{Golden, relative};
use anyhow::{Context, Result, ensure};
use kernels::Watch;
use kernels::cpu_ref::AdamwSpec;
use model::Model;
use safetensors::SafeTensors;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Instant;
use train::{Full, GradientOptions, Lora, Method, Parameter, Rate, Trained, Trainer, TrainerOptions};

/// The largest relative difference of a loss and of a norm.
const LOSS: f64 = 2e-4;
/// The largest relative L2 difference of the update: of all parameters together, without the worst
/// elements. AdamW makes a step of full size of a gradient near zero, whose sign is chance in f32.
const UPDATE: f64 = 2e-4;
const LEFT_OUT: usize = 8;

/// The trajectories that a folder may have, and the rows of a step of ours: the whole batch, or two
/// micro-batches.
const TRAJECTORIES: [(&str, u32); 2] = [("adamw", 128), ("adamw_clip1", 64)];

/// The values of tensors by their names in PEFT.
pub type Values = HashMap<String, Vec<f32>>;

/// Ten steps on one batch, by PyTorch.
pub struct Trajectory {
    name: &'static str,
    /// The rows of a step of ours.
    pub rows: u32,
    losses: Vec<f64>,
    norms: Vec<f64>,
    /// The loss after the last step.
    after: f64,
    /// How PyTorch stepped.
    pub options: TrainerOptions,
    last: Values,
}

/// What a run of a trajectory gave.
pub struct Run {
    pub losses: Vec<f64>,
    pub norms: Vec<f64>,
    /// The loss after the last step.
    pub after: f64,
    /// The trained tensors.
    pub last: Values,
    pub seconds: f64,
}

impl Trajectory {
    /// The trajectories of a folder.
    pub fn all(golden: &Golden) -> Result<Vec<Self>> {
        let expected = json(&golden.folder.join("golden.json"))?;
        let of = |(name, rows): (&'static str, u32)| {
            let trajectory = &expected[format!("trajectory_{name}")];
            (!trajectory.is_null()).then(|| Self::read(golden, name, rows, [trajectory, &expected]))
        };
        TRAJECTORIES.into_iter().filter_map(of).collect()
    }

    fn read(golden: &Golden, name: &'static str, rows: u32, values: [&Value; 2]) -> Result<Self> {
        let [trajectory, _] = values;
        let numbers = |key: &str| -> Result<Vec<f64>> {
            let list = trajectory[key].as_array().with_context(|| format!("a trajectory has no {key}"))?;
            list.iter().map(|v| v.as_f64().context("no number")).collect()
        };
        let file = golden.folder.join(format!("final_{name}.safetensors"));
        Ok(Self {
            name,
            rows,
            losses: numbers("losses")?,
            norms: numbers("grad_norms")?,
            after: trajectory["loss_after"].as_f64().context("a trajectory has no loss_after")?,
            options: options(name, values),
            last: named(&std::fs::read(file)?)?,
        })
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.losses.len()
    }

    /// Compares a run that began with these tensors.
    pub fn checks(&self, first: &Values, run: &Run) -> Result<Vec<Check>> {
        let worst = |got: &[f64], expected: &[f64]| {
            ensure!(got.len() == expected.len(), "{} steps, the reference has {}", got.len(), expected.len());
            Ok(got.iter().zip(expected).map(|(got, expected)| relative(*got, *expected)).fold(0.0, f64::max))
        };
        let loss = worst(&run.losses, &self.losses)?.max(relative(run.after, self.after));
        let norm = worst(&run.norms, &self.norms)?;
        let [whole, most] = updates(first, &run.last, &self.last)?;
        let check = |what: &str, worst: f64, bound: f64| {
            let mode = format!("{}: {what}", self.name);
            Check { mode, worst, bound, agrees: true, kl: None, flips: None, seconds: run.seconds }
        };
        // The whole update is reported, and bounded by nothing: one element may be off by a step.
        let all = check("update, whole", whole, f64::INFINITY);
        Ok(vec![check("losses", loss, LOSS), check("norms", norm, LOSS), check("update", most, UPDATE), all])
    }

    /// Runs the steps with a model.
    fn run(&self, golden: &Golden, model: &Model) -> Result<Vec<Check>> {
        let start = Instant::now();
        let method = match golden.trained(model)? {
            Trained::Factors(factors) => Method::Lora(Lora::new(1).init(factors)),
            _ => Method::Full(Full::default()),
        };
        let options = self.options.clone().gradients(GradientOptions::default().rows(self.rows));
        let mut trainer = Trainer::new(model, method, &options)?;
        let values = |trainer: &Trainer| -> Result<Values> {
            let architecture = model.summary().architecture;
            let named =
                |of: Parameter| Ok((of.peft_name(architecture).context("a tensor without a name in PEFT")?, of.values));
            trainer.parameters()?.into_iter().map(named).collect()
        };
        let (documents, first) = (golden.documents()?, values(&trainer)?);
        let (mut losses, mut norms) = (vec![], vec![]);
        for _ in 0..self.steps() {
            let step = trainer.step(&documents, Watch::default())?;
            losses.push(step.loss.loss);
            norms.push(step.norm);
        }
        let after = trainer.evaluate(&documents, Watch::default())?.loss;
        let run = Run { losses, norms, after, last: values(&trainer)?, seconds: start.elapsed().as_secs_f64() };
        self.checks(&first, &run)
    }
}

/// Compares the trajectories of a folder.
pub fn checks(golden: &Golden, model: &Model) -> Result<Vec<Check>> {
    let each: Vec<Vec<Check>> =
        Trajectory::all(golden)?.iter().map(|trajectory| trajectory.run(golden, model)).collect::<Result<_>>()?;
    Ok(each.concat())
}

/// The F32 tensors of a safetensors file.
pub fn named(bytes: &[u8]) -> Result<Values> {
    let tensors = SafeTensors::deserialize(bytes)?;
    let values = |data: &[u8]| data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    Ok(tensors.tensors().into_iter().map(|(name, tensor)| (name, values(tensor.data()))).collect())
}

/// The options of a trajectory: those that its file names, else those of the fixtures' README.
fn options(name: &str, values: [&Value; 2]) -> TrainerOptions {
    let number = |key: &str, usual: f64| values.iter().find_map(|value| value[key].as_f64()).unwrap_or(usual);
    let beta = |n: usize, usual: f64| values.iter().find_map(|value| value["betas"][n].as_f64()).unwrap_or(usual);
    let adamw = AdamwSpec {
        beta1: beta(0, 0.9),
        beta2: beta(1, 0.999),
        eps: number("eps", 1e-8),
        decay: number("weight_decay", 0.01),
    };
    let clip = values.iter().find_map(|value| value["clip"].as_f64()).or(name.ends_with("_clip1").then_some(1.0));
    TrainerOptions::default().rate(Rate::constant(number("lr", 2e-3))).adamw(adamw).clip(clip).decay_vectors(true)
}

/// The relative L2 difference of the update of all tensors together, and without the worst
/// elements.
fn updates(first: &Values, last: &Values, expected: &Values) -> Result<[f64; 2]> {
    ensure!(expected.len() == last.len(), "{} tensors, the reference has {}", last.len(), expected.len());
    let (mut wrong, mut moved) = (vec![], 0.0);
    for (name, last) in last {
        let of = |values: &'_ Values| -> Result<Vec<f32>> {
            let values = values.get(name).with_context(|| format!("the reference has no {name}"))?;
            ensure!(values.len() == last.len(), "{name}: {} elements", last.len());
            Ok(values.clone())
        };
        for ((first, last), expected) in of(first)?.into_iter().zip(last).zip(of(expected)?) {
            wrong.push((f64::from(*last) - f64::from(expected)).powi(2));
            moved += (f64::from(expected) - f64::from(first)).powi(2);
        }
    }
    wrong.sort_by(f64::total_cmp);
    let apart = |wrong: &[f64]| (wrong.iter().sum::<f64>() / moved).sqrt();
    let [whole, most] = [apart(&wrong), apart(&wrong[..wrong.len().saturating_sub(LEFT_OUT)])];
    Ok([whole, most].map(|apart| if apart.is_finite() { apart } else { f64::INFINITY }))
}
