//! Gradients of the default model: against finite differences, across executors, steps and
//! checkpointing, and what is refused.

use kernels::{Device, Executor, Watch};
use model::Model;
use std::path::Path;
use train::{Checkpointing, Document, Error, FactorPair, GradientOptions, Gradients, NO_TARGET};

fn model(executor: Executor) -> Model {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf");
    Model::open(file).expect("the default model").on(executor).expect("a model")
}

fn gpu() -> Executor {
    Executor::Gpu(Device::auto().expect("an adapter, if only the software one"))
}

/// `len` numbers between -size and size that repeat nowhere.
fn numbers(len: usize, seed: u32, size: f64) -> Vec<f32> {
    (0..len).map(|i| (size * ((i as f64 * 0.7391 + f64::from(seed) * 2.113).sin() * 1.7).sin()) as f32).collect()
}

/// Factors of rank 3, which states hold as rank 4, on a few weights of the first and last layer.
fn factors(model: &Model) -> Vec<FactorPair> {
    let last = model.summary().block_count - 1;
    let names = ["attn_q", "attn_v", "attn_output", "ffn_down"].map(|name| format!("blk.0.{name}.weight"));
    let all = names.into_iter().chain(["attn_k", "ffn_gate", "ffn_up"].map(|name| format!("blk.{last}.{name}.weight")));
    let pair = |(seed, target): (u32, String)| {
        let (_, weight) = model.weights().iter().find(|(name, _)| *name == target).expect("a weight");
        let (a, b) = (numbers(3 * weight.cols as usize, seed, 0.05), numbers(weight.rows as usize * 3, seed + 50, 0.05));
        FactorPair { target, rank: 3, scale: 2.0, a, b }
    };
    (0..).zip(all).map(pair).collect()
}

fn documents() -> Vec<Document> {
    let document = |ids: std::ops::Range<u32>, skipped: usize| {
        let targets = ids.clone().map(|id| id * 7 % 200 + 3).enumerate();
        let targets = targets.map(|(t, id)| if t < skipped { NO_TARGET } else { id }).collect();
        Document { ids: ids.collect(), targets, weights: vec![] }
    };
    vec![document(10..31, 3), document(50..60, 0), document(70..71, 0)]
}

fn computed(model: &Model, factors: &[FactorPair], options: &GradientOptions) -> (f64, Vec<f32>, Vec<FactorPair>) {
    let mut gradients = Gradients::new(model, factors, options).expect("gradients");
    gradients.poison(u32::MAX);
    let loss = gradients.compute(&documents(), Watch::default()).expect("a loss");
    assert_eq!((loss.targets, loss.each.len()), (29, 29));
    (loss.loss, loss.embedding, gradients.gradients().expect("gradients"))
}

fn flat(pairs: &[FactorPair]) -> Vec<f32> {
    pairs.iter().flat_map(|pair| pair.a.iter().chain(&pair.b)).copied().collect()
}

/// The relative L2 difference.
fn apart(got: &[f32], expected: &[f32]) -> f64 {
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let wrong = squares(&mut got.iter().zip(expected).map(|(a, b)| f64::from(a - b)));
    (wrong / squares(&mut expected.iter().map(|v| f64::from(*v)))).sqrt()
}

#[test]
fn finite_differences_along_random_directions() {
    let model = model(Executor::Cpu);
    let (start, options) = (factors(&model), GradientOptions { rows: 64, ..GradientOptions::default() });
    let (_, _, gradient) = computed(&model, &start, &options);
    for seed in [100, 200] {
        let directions: Vec<Vec<f32>> = (0..).zip(&start).map(|(n, pair)| numbers(pair.a.len() + pair.b.len(), seed + n, 0.05)).collect();
        let along = |by: f64| {
            let moved = start.iter().zip(&directions).map(|(pair, direction)| {
                let (of_a, of_b) = direction.split_at(pair.a.len());
                let add =
                    |values: &[f32], of: &[f32]| values.iter().zip(of).map(|(v, d)| (f64::from(*v) + by * f64::from(*d)) as f32).collect();
                FactorPair { a: add(&pair.a, of_a), b: add(&pair.b, of_b), ..pair.clone() }
            });
            computed(&model, &moved.collect::<Vec<_>>(), &options).0
        };
        let difference = |by: f64| (along(by) - along(-by)) / (2.0 * by);
        let expected = (4.0 * difference(0.02) - difference(0.04)) / 3.0;
        let direction: Vec<f32> = directions.concat();
        let got: f64 = flat(&gradient).iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        assert!((got - expected).abs() <= 1e-3 * expected.abs(), "{got} along direction {seed}, by differences {expected}");
    }
}

#[test]
fn steps_and_layers_recorded_again_give_the_same_gradients() {
    for executor in [Executor::Cpu, gpu()] {
        let kind = executor.kind();
        let model = model(executor);
        let factors = factors(&model);
        let options = GradientOptions { rows: 64, checkpointing: Checkpointing::None, embedding: true };
        let (loss, embedding, whole) = computed(&model, &factors, &options);
        let again = computed(&model, &factors, &GradientOptions { checkpointing: Checkpointing::Layer, ..options.clone() });
        assert_eq!((again.0.to_bits(), &again.1, &again.2), (loss.to_bits(), &embedding, &whole), "{kind}: layers recorded again");
        // The documents one after the other in shorter steps.
        let mut gradients = Gradients::new(&model, &factors, &options).expect("gradients");
        let mut sum = vec![0.0; flat(&whole).len()];
        let mut each = 0.0;
        for document in documents() {
            let alone = gradients.compute(std::slice::from_ref(&document), Watch::default()).expect("a loss");
            let share = alone.targets as f64 / 29.0;
            each += alone.loss * share;
            let part = flat(&gradients.gradients().expect("gradients"));
            sum.iter_mut().zip(&part).for_each(|(sum, part)| *sum += (f64::from(*part) * share) as f32);
        }
        assert!((each - loss).abs() <= 1e-6 * loss, "{kind}: {each} and {loss}");
        assert!(apart(&sum, &flat(&whole)) <= 1e-5, "{kind}: documents attend to each other");
    }
}

#[test]
fn both_executors_agree() {
    let options = GradientOptions { rows: 64, checkpointing: Checkpointing::None, embedding: true };
    let [(cpu, cpu_embedding, expected), (gpu, embedding, got)] = [Executor::Cpu, gpu()].map(|executor| {
        let model = model(executor);
        computed(&model, &factors(&model), &options)
    });
    assert!((cpu - gpu).abs() <= 1e-5 * cpu, "{cpu} and {gpu}");
    assert!(apart(&embedding, &cpu_embedding) <= 1e-4);
    for (got, expected) in got.iter().zip(&expected) {
        assert!(apart(&got.a, &expected.a) <= 1e-4 && apart(&got.b, &expected.b) <= 1e-4, "{}", got.target);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let model = model(Executor::Cpu);
    let refused = |factors: &[FactorPair]| Gradients::new(&model, factors, &GradientOptions::default()).map(|_| ()).expect_err("refused");
    let good = factors(&model).remove(0);
    let error = refused(&[FactorPair { target: "blk.99.attn_q.weight".to_string(), ..good.clone() }]);
    assert!(matches!(&error, Error::NoTarget { target } if target == "blk.99.attn_q.weight"), "{error}");
    let error = refused(&[FactorPair { rank: 5, ..good }]);
    assert!(matches!(&error, Error::Factors { target, .. } if target == "blk.0.attn_q.weight"), "{error}");
}
