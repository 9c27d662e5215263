//! Gradients of every architecture against finite differences, on the CPU, with layers recorded
//! again, and on a GPU.

#[path = "../../model/tests/common/mod.rs"]
mod common;

use common::{Tiny, gpu};
use gguf::GgmlType;
use kernels::{Class, Executor, Table, Watch};
use model::Model;
use std::collections::BTreeMap;
use std::path::Path;
use train::{
    Checkpointing, Document, Error, FactorPair, Full, GradientOptions, Gradients, NO_TARGET, Parameter, Trained,
    Trainer, TrainerOptions,
};

/// `len` numbers between -size and size that repeat nowhere.
fn numbers(len: usize, seed: u32, size: f64) -> Vec<f32> {
    (0..len).map(|i| (size * ((i as f64 * 0.7391 + f64::from(seed) * 2.113).sin() * 1.7).sin()) as f32).collect()
}

/// Low-rank factors on every matrix that a plain product reads. A router's product is exact and
/// takes none.
fn factors(model: &Model) -> Vec<FactorPair> {
    let read = |name: &str| !["embd", "exps", "ffn_gate_inp"].iter().any(|part| name.contains(part));
    let all = model.weights().iter().filter(|(name, weight)| weight.rows > 1 && read(name));
    let pair = |(seed, (target, weight)): (u32, (&str, kernels::Weight))| {
        let (a, b) = (numbers(2 * weight.cols as usize, seed, 0.1), numbers(2 * weight.rows as usize, seed + 500, 0.1));
        FactorPair { target: target.to_string(), rank: 2, scale: 1.5, a, b }
    };
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(name, _)| name.to_string());
    (0..).zip(all).map(pair).collect()
}

/// Two documents. One token has no target.
fn documents() -> Vec<Document> {
    let document = |ids: &[u32]| {
        let mut targets: Vec<u32> = ids.iter().map(|id| (id * 7 + 3) % 256).collect();
        targets[0] = NO_TARGET;
        Document { ids: ids.to_vec(), targets, ..Document::default() }
    };
    vec![document(&[10, 99, 45, 99, 7, 200, 31, 64, 5, 99, 120]), document(&[77, 8, 150])]
}

fn options(checkpointing: Checkpointing) -> GradientOptions {
    GradientOptions::default().rows(64).checkpointing(checkpointing)
}

fn all(model: &Model, trained: &Trained, checkpointing: Checkpointing) -> (f64, Vec<Parameter>) {
    let mut gradients = Gradients::new(model, trained, &options(checkpointing)).expect("gradients");
    gradients.poison(u32::MAX);
    let loss = gradients.compute(&documents(), Watch::default()).expect("a loss");
    (loss.loss, gradients.gradients().expect("gradients"))
}

/// The loss, and the gradients in the form of the factors.
fn computed(model: &Model, factors: &[FactorPair], checkpointing: Checkpointing) -> (f64, Vec<FactorPair>) {
    let (loss, gradients) = all(model, &Trained::Factors(factors.to_vec()), checkpointing);
    let pair = |(pair, of): (&FactorPair, &[Parameter])| FactorPair {
        a: of[0].values.clone(),
        b: of[1].values.clone(),
        ..pair.clone()
    };
    (loss, factors.iter().zip(gradients.chunks_exact(2)).map(pair).collect())
}

/// The factors moved along a direction, which has the form of the factors.
fn moved(start: &[FactorPair], direction: &[FactorPair], by: f64) -> Vec<FactorPair> {
    let along = |values: &[f32], of: &[f32]| {
        values.iter().zip(of).map(|(v, d)| (f64::from(*v) + by * f64::from(*d)) as f32).collect()
    };
    start
        .iter()
        .zip(direction)
        .map(|(pair, d)| FactorPair { a: along(&pair.a, &d.a), b: along(&pair.b, &d.b), ..pair.clone() })
        .collect()
}

fn product(a: &[FactorPair], b: &[FactorPair]) -> f64 {
    let flat = |pairs: &[FactorPair]| {
        pairs.iter().flat_map(|pair| pair.a.iter().chain(&pair.b)).map(|v| f64::from(*v)).collect::<Vec<_>>()
    };
    flat(a).iter().zip(flat(b)).map(|(a, b)| a * b).sum()
}

/// The targets by the name that they have in every layer.
fn kinds(factors: &[FactorPair]) -> BTreeMap<String, Vec<usize>> {
    let mut kinds: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (n, pair) in factors.iter().enumerate() {
        let name = pair
            .target
            .strip_prefix("blk.")
            .and_then(|rest| rest.split_once('.'))
            .map_or(pair.target.as_str(), |(_, name)| name);
        kinds.entry(name.to_string()).or_default().push(n);
    }
    kinds
}

/// Compares the gradient with central differences along a direction for each kind of weight. Half
/// of the direction is random, half is the gradient, so that a short step changes the loss by more
/// than its rounding: neither curvature nor another choice of an expert then decides.
fn holds(name: &str, model: &Model) {
    let start = factors(model);
    let (_, gradient) = computed(model, &start, Checkpointing::None);
    for (kind, which) in kinds(&start) {
        let of = |values: &[f32], seed: u32| {
            let random = numbers(values.len(), seed, 1.0);
            let size = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            let share = (size(values) / size(&random)) as f32;
            values.iter().zip(random).map(|(g, r)| g + share * r).collect()
        };
        let direction = |(n, pair): (usize, &FactorPair)| match which.contains(&n) {
            true => FactorPair { a: of(&pair.a, n as u32 + 900), b: of(&pair.b, n as u32 + 950), ..pair.clone() },
            false => FactorPair { a: vec![0.0; pair.a.len()], b: vec![0.0; pair.b.len()], ..pair.clone() },
        };
        let direction: Vec<FactorPair> = gradient.iter().enumerate().map(direction).collect();
        let got = product(&gradient, &direction);
        let step = 0.001 / got;
        let along = |by: f64| computed(model, &moved(&start, &direction, by), Checkpointing::None).0;
        let difference = |by: f64| (along(by) - along(-by)) / (2.0 * by);
        let expected = (4.0 * difference(step) - difference(2.0 * step)) / 3.0;
        let error = (got - expected).abs() / expected.abs();
        println!("{name} {kind}: {got:e}, by differences {expected:e}, {error:e}");
        assert!(error <= 1e-3, "{name} {kind}: {got}, by differences {expected}");
    }
}

/// Training of the weights themselves: norms, biases, tables, matrices. The loss at a moved weight
/// is that of a file with the moved weight, which is f32 already.
fn weights_hold(tiny: &Tiny) {
    let name = tiny.architecture;
    let exact = Tiny { types: &[GgmlType::F32], ..tiny.clone() };
    let trainable = |name: &str| !["exps", "rope_freqs"].iter().any(|part| name.contains(part));
    let mut names = vec![];
    exact.edited(exact.metadata(), |name, _| {
        names.extend(trainable(name).then(|| name.to_string()));
        true
    });
    let model = exact.on(&Executor::Cpu);
    let trained = Trained::Weights(names);
    let (_, gradients) = all(&model, &trained, Checkpointing::None);
    assert_eq!(all(&model, &trained, Checkpointing::Layer).1, gradients, "{name}: layers recorded again");
    let loss = |moved: &str, direction: &[f32], by: f64| {
        let file = exact.edited(exact.metadata(), |name, spec| {
            if name == moved {
                spec.values
                    .iter_mut()
                    .zip(direction)
                    .for_each(|(v, d)| *v = (f64::from(*v) + by * f64::from(*d)) as f32);
            }
            true
        });
        let model = common::open(&file).expect("a good file").on(Executor::Cpu).expect("loads");
        all(&model, &Trained::Weights(vec!["output_norm.weight".to_string()]), Checkpointing::None).0
    };
    let size = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let last = format!("blk.{}.", exact.layers - 1);
    let inner =
        |target: &str| target.starts_with("blk.") && !target.starts_with("blk.0.") && !target.starts_with(&last);
    for (seed, Parameter { name: target, values, .. }) in (0..).zip(&gradients).filter(|(_, of)| !inner(&of.name)) {
        if *target == format!("{last}layer_output_scale.weight") {
            // The norm of the output takes this scale back, so that the loss does not depend on it.
            assert!(size(values) < 1e-6, "{name} {target}: {values:?}");
            continue;
        }
        let random = numbers(values.len(), seed, 1.0);
        let share = (size(values) / size(&random)) as f32;
        let direction: Vec<f32> = values.iter().zip(random).map(|(g, r)| g + share * r).collect();
        let got: f64 = values.iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        let step = 0.001 / got;
        let difference = |by: f64| (loss(target, &direction, by) - loss(target, &direction, -by)) / (2.0 * by);
        let expected = (4.0 * difference(step) - difference(2.0 * step)) / 3.0;
        let error = (got - expected).abs() / expected.abs();
        println!("{name} {target}: {got:e}, by differences {expected:e}, {error:e}");
        assert!(error <= 1e-3, "{name} {target}: {got}, by differences {expected}");
    }
}

#[test]
fn weights_of_qwen2_with_biases_and_experts() {
    weights_hold(&Tiny::qwen2moe());
}

#[test]
fn weights_of_qwen3_with_an_output_matrix() {
    weights_hold(&Tiny::qwen3());
}

#[test]
fn weights_of_gemma4_with_embeddings_for_each_layer() {
    weights_hold(&Tiny::gemma4());
}

#[test]
fn what_no_product_reads_is_named() {
    let model = Tiny::qwen3moe().on(&Executor::Cpu);
    let refused = |trained: Trained| {
        Gradients::new(&model, &trained, &options(Checkpointing::None)).map(drop).expect_err("refused")
    };
    let experts = "blk.0.ffn_down_exps.weight";
    let (_, weight) = model.weights().iter().find(|(name, _)| *name == experts).expect("a weight");
    let (a, b) = (vec![0.0; weight.cols as usize], vec![0.0; weight.rows as usize]);
    let pair = FactorPair { target: experts.to_string(), rank: 1, scale: 1.0, a, b };
    for trained in [Trained::Factors(vec![pair]), Trained::Weights(vec![experts.to_string()])] {
        let error = refused(trained);
        assert!(matches!(&error, Error::NotTrained { target, .. } if target.starts_with(experts)), "{error}");
    }
    for full in [Full::default(), Full::default().fresh(1)] {
        let error = Trainer::new(&model, full, &TrainerOptions::default()).map(drop).expect_err("refused");
        assert!(
            matches!(&error, Error::NotTrained { target, reason } if target.contains("_exps") && reason.contains("experts")),
            "{error}"
        );
    }
}

/// The relative L2 difference of the worst pair.
fn apart(got: &[FactorPair], expected: &[FactorPair]) -> f64 {
    let pair = |(got, expected): (&FactorPair, &FactorPair)| {
        let minus = moved(std::slice::from_ref(got), std::slice::from_ref(expected), -1.0);
        (product(&minus, &minus) / product(std::slice::from_ref(expected), std::slice::from_ref(expected))).sqrt()
    };
    got.iter().zip(expected).map(pair).fold(0.0, f64::max)
}

/// Layers recorded again change no bit, and a GPU computes the same.
fn agrees(name: &str, on: impl Fn(Executor) -> Model) {
    let cpu = on(Executor::Cpu);
    let start = factors(&cpu);
    let (loss, expected) = computed(&cpu, &start, Checkpointing::None);
    let Executor::Gpu(device) = gpu() else { panic!("a GPU executor") };
    let card = device.with_table(Table::usual(Class::Discrete, device.caps().cooperative));
    for (kind, executor, bound) in
        [("cpu", Executor::Cpu, 0.0), ("gpu", gpu(), 1e-4), ("a card's plans", Executor::Gpu(card), 1e-4)]
    {
        let model = on(executor);
        let whole = computed(&model, &start, Checkpointing::None);
        let again = computed(&model, &start, Checkpointing::Layer);
        assert_eq!(
            (again.0.to_bits(), &again.1),
            (whole.0.to_bits(), &whole.1),
            "{name} on {kind}: layers recorded again"
        );
        let difference = apart(&whole.1, &expected);
        println!("{name} on {kind}: {difference:e}");
        assert!((whole.0 - loss).abs() <= 1e-5 * loss && difference <= bound, "{name} on {kind}: {difference:e}");
    }
}

fn gemma3n(executor: Executor) -> Model {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/gemma3n/gemma3n-F16.gguf");
    Model::open(&file).expect("a good file").on(executor).expect("a model")
}

macro_rules! architectures {
    ($($name:ident: $on:expr,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn finite_differences() {
                let on: fn(Executor) -> Model = $on;
                holds(stringify!($name), &on(Executor::Cpu));
            }

            #[test]
            fn layers_recorded_again_and_on_a_gpu() {
                agrees(stringify!($name), $on);
            }
        })*
    };
}

architectures! {
    qwen2: |on| Tiny::qwen2().on(&on),
    qwen3: |on| Tiny::qwen3().on(&on),
    qwen2moe: |on| Tiny::qwen2moe().on(&on),
    qwen3moe: |on| Tiny::qwen3moe().on(&on),
    gemma2: |on| Tiny::gemma2().on(&on),
    gemma3: |on| Tiny::gemma3().on(&on),
    gemma3n: gemma3n,
    gemma4: |on| Tiny::gemma4().on(&on),
    gemma4_dense: |on| Tiny::gemma4_dense().on(&on),
    gemma4_experts: |on| Tiny::gemma4_experts().on(&on),
}
