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

/// Compares the trajectories of a folder.
pub fn checks(golden: &Golden, model: &Model) -> Result<Vec<Check>> {
    let expected = json(&golden.folder.join("golden.json"))?;
    let mut checks = vec![];
    for (name, rows) in TRAJECTORIES {
        let trajectory = &expected[format!("trajectory_{name}")];
        if !trajectory.is_null() {
            checks.extend(compared(golden, model, name, rows, [trajectory, &expected])?);
        }
    }
    Ok(checks)
}

fn compared(
    golden: &Golden,
    model: &Model,
    name: &str,
    rows: u32,
    [trajectory, all]: [&Value; 2],
) -> Result<Vec<Check>> {
    let start = Instant::now();
    let numbers = |key: &str| -> Result<Vec<f64>> {
        let list = trajectory[key].as_array().with_context(|| format!("a trajectory has no {key}"))?;
        list.iter().map(|v| v.as_f64().context("no number")).collect()
    };
    let (losses, norms) = (numbers("losses")?, numbers("grad_norms")?);
    let method = match golden.trained(model)? {
        Trained::Factors(factors) => Method::Lora(Lora::new(1).init(factors)),
        _ => Method::Full(Full::default()),
    };
    let options = options(name, [trajectory, all]).gradients(GradientOptions::default().rows(rows));
    let mut trainer = Trainer::new(model, method, &options)?;
    let (documents, first) = (golden.documents()?, trainer.parameters()?);
    let (mut loss, mut norm) = (0.0f64, 0.0f64);
    for (expected_loss, expected_norm) in losses.iter().zip(&norms) {
        let step = trainer.step(&documents, Watch::default())?;
        loss = loss.max(relative(step.loss.loss, *expected_loss));
        norm = norm.max(relative(step.norm, *expected_norm));
    }
    let after = trainer.evaluate(&documents, Watch::default())?.loss;
    loss = loss.max(relative(after, trajectory["loss_after"].as_f64().context("a trajectory has no loss_after")?));
    let file = golden.folder.join(format!("final_{name}.safetensors"));
    let [whole, most] = updates(model, &first, &trainer.parameters()?, &std::fs::read(file)?)?;
    let seconds = start.elapsed().as_secs_f64();
    let check = |what: &str, worst: f64, bound: f64| {
        let mode = format!("{name}: {what}");
        Check { mode, worst, bound, agrees: true, kl: None, flips: None, seconds }
    };
    // The whole update is reported, and bounded by nothing: one element may be off by a step.
    let all = check("update, whole", whole, f64::INFINITY);
    Ok(vec![check("losses", loss, LOSS), check("norms", norm, LOSS), check("update", most, UPDATE), all])
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

/// The relative L2 difference of the update of all parameters together, and without the worst
/// elements.
fn updates(model: &Model, first: &[Parameter], last: &[Parameter], expected: &[u8]) -> Result<[f64; 2]> {
    let file = SafeTensors::deserialize(expected)?;
    let tensors: HashMap<String, _> = file.tensors().into_iter().collect();
    ensure!(tensors.len() == last.len(), "{} tensors, the reference has {}", last.len(), tensors.len());
    let (mut wrong, mut moved) = (vec![], 0.0);
    for (first, last) in first.iter().zip(last) {
        let name = last.peft_name(model.summary().architecture).context("a tensor without a name in PEFT")?;
        let bytes = tensors.get(&name).with_context(|| format!("the reference has no {name}"))?.data();
        ensure!(bytes.len() == 4 * last.values.len(), "{name}: {} elements", last.values.len());
        for ((first, last), bytes) in first.values.iter().zip(&last.values).zip(bytes.chunks_exact(4)) {
            let expected = f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            wrong.push((f64::from(*last) - expected).powi(2));
            moved += (expected - f64::from(*first)).powi(2);
        }
    }
    wrong.sort_by(f64::total_cmp);
    let apart = |wrong: &[f64]| (wrong.iter().sum::<f64>() / moved).sqrt();
    let [whole, most] = [apart(&wrong), apart(&wrong[..wrong.len().saturating_sub(LEFT_OUT)])];
    Ok([whole, most].map(|apart| if apart.is_finite() { apart } else { f64::INFINITY }))
}
