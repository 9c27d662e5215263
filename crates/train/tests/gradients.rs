//! Gradients of the default model: against finite differences, across executors, steps and
//! checkpointing, and what is refused.

use kernels::{Device, Executor, Phase, Progress, Watch};
use model::{Model, SessionOptions};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use train::{
    Capture, Checkpointing, Document, Error, FactorPair, Full, GradientOptions, Gradients, Lora, Memory, Method,
    NO_TARGET, Parameter, Trained, Trainer, TrainerOptions,
};

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

/// Factors of rank 3, which states hold as rank 4, on a few weights of the first and last layer,
/// and on the two uses of the tied embeddings.
fn factors(model: &Model) -> Vec<FactorPair> {
    let last = model.summary().block_count - 1;
    let names = ["attn_q", "attn_v", "attn_output", "ffn_down"].map(|name| format!("blk.0.{name}.weight"));
    let all = names.into_iter().chain(["attn_k", "ffn_gate", "ffn_up"].map(|name| format!("blk.{last}.{name}.weight")));
    let all = all.chain(["output.weight", "token_embd.weight"].map(str::to_string));
    let pair = |(seed, target): (u32, String)| {
        let tied = if target == "output.weight" { "token_embd.weight" } else { &target };
        let (_, weight) = model.weights().iter().find(|(name, _)| *name == tied).expect("a weight");
        let (a, b) =
            (numbers(3 * weight.cols as usize, seed, 0.05), numbers(weight.rows as usize * 3, seed + 50, 0.05));
        FactorPair { target, rank: 3, scale: 2.0, a, b }
    };
    (0..).zip(all).map(pair).collect()
}

fn documents() -> Vec<Document> {
    let document = |ids: std::ops::Range<u32>, skipped: usize| {
        let targets = ids.clone().map(|id| id * 7 % 200 + 3).enumerate();
        let targets = targets.map(|(t, id)| if t < skipped { NO_TARGET } else { id }).collect();
        Document { ids: ids.collect(), targets, ..Document::default() }
    };
    vec![document(10..31, 3), document(50..60, 0), document(70..71, 0)]
}

/// A loss, the captures one after the other, and the gradients.
type Computed = (f64, Vec<f32>, Vec<Parameter>);

fn computed(model: &Model, trained: &Trained, options: &GradientOptions) -> Computed {
    let mut gradients = Gradients::new(model, trained, options).expect("gradients");
    gradients.poison(u32::MAX);
    let loss = gradients.compute(&documents(), Watch::default()).expect("a loss");
    assert_eq!((loss.targets, loss.each.len()), (29, 29));
    let captures = loss.captures.iter().flat_map(|captured| captured.values.clone()).collect();
    (loss.loss, captures, gradients.gradients().expect("gradients"))
}

/// All gradients in the order of the factors. The factor A of the embedding lies transposed.
fn in_order(gradients: &[Parameter]) -> Vec<f32> {
    let values = |of: &Parameter| match of.name.as_str() {
        "token_embd.weight.lora_a" => model::transpose(&of.values, of.cols as usize),
        _ => of.values.clone(),
    };
    gradients.iter().flat_map(values).collect()
}

fn flat(gradients: &[Parameter]) -> Vec<f32> {
    gradients.iter().flat_map(|parameter| parameter.values.iter().copied()).collect()
}

/// Steps of 64 rows with the derivatives by the input of the first layer.
fn options() -> GradientOptions {
    GradientOptions::default().rows(64).captures(vec![Capture::gradient("embed")])
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
    let (start, options) = (factors(&model), GradientOptions::default().rows(64));
    let (_, _, gradient) = computed(&model, &Trained::Factors(start.clone()), &options);
    for seed in [100, 200] {
        let directions: Vec<Vec<f32>> =
            (0..).zip(&start).map(|(n, pair)| numbers(pair.a.len() + pair.b.len(), seed + n, 0.05)).collect();
        let along = |by: f64| {
            let moved = start.iter().zip(&directions).map(|(pair, direction)| {
                let (of_a, of_b) = direction.split_at(pair.a.len());
                let add = |values: &[f32], of: &[f32]| {
                    values.iter().zip(of).map(|(v, d)| (f64::from(*v) + by * f64::from(*d)) as f32).collect()
                };
                FactorPair { a: add(&pair.a, of_a), b: add(&pair.b, of_b), ..pair.clone() }
            });
            computed(&model, &Trained::Factors(moved.collect()), &options).0
        };
        let difference = |by: f64| (along(by) - along(-by)) / (2.0 * by);
        let expected = (4.0 * difference(0.02) - difference(0.04)) / 3.0;
        let direction: Vec<f32> = directions.concat();
        let got: f64 = in_order(&gradient).iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        assert!(
            (got - expected).abs() <= 1e-3 * expected.abs(),
            "{got} along direction {seed}, by differences {expected}"
        );
    }
}

#[test]
fn steps_and_layers_recorded_again_give_the_same_gradients() {
    for executor in [Executor::Cpu, gpu()] {
        let kind = executor.kind();
        let model = model(executor);
        let factors = Trained::Factors(factors(&model));
        let options = options()
            .captures(["grad.embed", "layer_out", "grad.ffn_norm"].map(|name| name.parse().expect("a name")).to_vec());
        let (loss, embedding, whole) = computed(&model, &factors, &options);
        let again = computed(&model, &factors, &options.clone().checkpointing(Checkpointing::Layer));
        assert_eq!(
            (again.0.to_bits(), &again.1, &again.2),
            (loss.to_bits(), &embedding, &whole),
            "{kind}: layers recorded again"
        );
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
    let options = options();
    let [(cpu, cpu_embedding, expected), (gpu, embedding, got)] = [Executor::Cpu, gpu()].map(|executor| {
        let model = model(executor);
        computed(&model, &Trained::Factors(factors(&model)), &options)
    });
    assert!((cpu - gpu).abs() <= 1e-5 * cpu, "{cpu} and {gpu}");
    assert!(apart(&embedding, &cpu_embedding) <= 1e-4);
    for (got, expected) in got.iter().zip(&expected) {
        assert!(apart(&got.values, &expected.values) <= 1e-4, "{}", got.name);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let model = model(Executor::Cpu);
    let refused = |factors: &[FactorPair]| {
        let trained = Trained::Factors(factors.to_vec());
        Gradients::new(&model, &trained, &GradientOptions::default()).map(|_| ()).expect_err("refused")
    };
    let good = factors(&model).remove(0);
    let error = refused(&[FactorPair { target: "blk.99.attn_q.weight".to_string(), ..good.clone() }]);
    assert!(matches!(&error, Error::NoTarget { target } if target == "blk.99.attn_q.weight"), "{error}");
    let error = refused(&[FactorPair { rank: 5, ..good }]);
    assert!(matches!(&error, Error::Factors { target, .. } if target == "blk.0.attn_q.weight"), "{error}");
}

#[test]
fn a_cancelled_batch_runs_again_with_the_same_bits_and_tells_how_far_it_is() {
    for executor in [Executor::Cpu, gpu()] {
        let (kind, model) = (executor.kind(), model(executor));
        let mut gradients = Gradients::new(&model, &Trained::Factors(factors(&model)), &options()).expect("gradients");
        let told = Mutex::new(vec![]);
        let note = |phase: Phase, progress: Progress| told.lock().expect("a list").push((phase, progress));
        let mut loss = |watch: Watch<'_>| {
            gradients.compute(&documents(), watch).map(|loss| (loss.loss.to_bits(), gradients.gradients()))
        };
        let whole = loss(Watch { cancel: None, progress: Some(&note) }).expect("a loss");
        let whole = (whole.0, whole.1.expect("gradients"));
        let told = told.into_inner().expect("a list");
        let layers = u64::from(model.summary().block_count);
        for phase in [Phase::Forward, Phase::Backward] {
            let of = told.iter().filter(|(of, progress)| *of == phase && progress.total == layers);
            let done: Vec<u64> = of.map(|(_, progress)| progress.done).collect();
            assert!(done.is_sorted() && (0..layers).all(|layer| done.contains(&layer)), "{kind}: {phase:?} {done:?}");
        }
        // Cancelled at every cut in turn, the last one included; on a device at every eleventh.
        let every = if matches!(model.executor(), Executor::Cpu) { 1 } else { 11 };
        for at in (0..told.len()).rev().step_by(every) {
            let (cancel, left) = (AtomicBool::new(false), AtomicUsize::new(at));
            let count = |_: Phase, _: Progress| {
                if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err() {
                    cancel.store(true, Ordering::Relaxed);
                }
            };
            let error = loss(Watch { cancel: Some(&cancel), progress: Some(&count) }).expect_err("cancelled");
            assert!(matches!(error, Error::Kernels(kernels::Error::Cancelled)), "{kind}: {error}");
        }
        let again = loss(Watch::default()).expect("a loss");
        assert_eq!((again.0, again.1.expect("gradients")), whole, "{kind}: after {} cancelled runs", told.len());
    }
}

#[test]
fn the_estimate_is_what_is_allocated() {
    let device = Device::auto().expect("an adapter, if only the software one");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf");
    for checkpointing in [Checkpointing::None, Checkpointing::Layer] {
        let options = options().rows(256).checkpointing(checkpointing);
        let checked =
            Model::open(&file).expect("the default model").check(&Executor::Gpu(device.clone())).expect("its tensors");
        let model = Model::open(&file).expect("the default model").on(&device).expect("a model");
        let trained = Trained::Factors(factors(&model));
        let estimate = Gradients::memory_of(&checked, &trained, &options).expect("an estimate");
        let before = device.buffer_bytes() - model.weight_bytes();
        let mut gradients = Gradients::new(&model, &trained, &options).expect("gradients");
        gradients.compute(&documents(), Watch::default()).expect("a loss");
        let allocated = (device.buffer_bytes() - before) as f64;
        assert_eq!(gradients.memory(), estimate);
        let total = estimate.total() as f64;
        assert!((total - allocated).abs() <= 0.1 * allocated, "{checkpointing:?}: {estimate}, allocated {allocated}");
    }
}

#[test]
fn a_session_and_a_trainer_share_one_base() {
    let device = Device::auto().expect("an adapter, if only the software one");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf");
    let model = Model::open(file).expect("the default model").on(&device).expect("a model");
    let before = device.buffer_bytes();
    let mut session = model.session(SessionOptions::default().context(64).chunk(16)).expect("a session");
    session.feed(&[1, 2, 3]).expect("room");
    session.prefill(None).expect("a step");
    let of_session = device.buffer_bytes() - before;
    assert!(of_session < model.weight_bytes(), "{of_session} bytes, the weights are {}", model.weight_bytes());
    let options = TrainerOptions::default().gradients(options().rows(64));
    let mut trainer = Trainer::new(&model, Lora::new(2), &options).expect("a trainer");
    trainer.step(&documents(), Watch::default()).expect("a step");
    let own = trainer.memory().total() - trainer.memory().weights;
    let grown = device.buffer_bytes() - before - of_session;
    assert!(grown < own + model.weight_bytes() / 2, "{grown} bytes, {own} of them the trainer's own");
}

#[test]
fn what_is_too_large_is_refused_before_anything_is_allocated() {
    let model = model(gpu());
    // The head's factors need the same memory whatever the rows, so they stay out.
    let trained = Trained::Factors(factors(&model)[..7].to_vec());
    let need = |rows, checkpointing| {
        let options = options().rows(rows).checkpointing(checkpointing);
        Gradients::new(&model, &trained, &options).expect("gradients").memory()
    };
    let [whole, layers] = [Checkpointing::None, Checkpointing::Layer].map(|checkpointing| need(256, checkpointing));
    assert!(layers.saved * 2 < whole.saved && layers.total() < whole.total(), "{whole} and {layers}");
    let within = |bytes: u64, checkpointing| {
        let options = options().rows(256).checkpointing(checkpointing).memory_bytes(Some(bytes - whole.weights));
        Gradients::new(&model, &trained, &options).map(|gradients| gradients.checkpointing())
    };
    assert_eq!(within(whole.total(), Checkpointing::Auto).expect("fits"), Checkpointing::None);
    // With less free memory, the head goes in smaller parts as well.
    let between = (whole.total() + layers.total()) / 2;
    assert_eq!(within(between, Checkpointing::Auto).expect("fits"), Checkpointing::Layer);
    let error = within(need(128, Checkpointing::Layer).total(), Checkpointing::Auto).expect_err("too large");
    assert!(error.to_string().contains("steps of 128 rows fit"), "{error}");
    let error = within(between, Checkpointing::None).expect_err("too large");
    assert!(error.to_string().contains("fit if layers are computed again"), "{error}");
}

#[test]
fn what_is_advised_where_all_weights_do_not_fit_would_fit() {
    let model = model(Executor::Cpu);
    let need =
        |trained: &Trained, rows| Gradients::new(&model, trained, &options().rows(rows)).expect("gradients").memory();
    let all = Method::from(Full::default()).trained(model.weights()).expect("weights");
    let refused = |bytes: u64| {
        let options = options().rows(256).memory_bytes(Some(bytes));
        match Gradients::new(&model, &all, &options).map(|_| ()).expect_err("too large") {
            error @ Error::TooLarge { factors, fit, .. } => (factors, fit.is_some(), error.to_string()),
            other => panic!("{other}"),
        }
    };
    let beside = |memory: Memory| memory.total() - memory.weights;
    let (whole, fewest) = (beside(need(&all, 256)), beside(need(&all, 64)));
    // Factors of all layers and their values fit where all weights do not, but these fit in fewer
    // rows.
    let (factors, fewer, said) = refused(whole - 1);
    assert!(factors && fewer && said.contains("low-rank factors in place of all weights fit"), "{said}");
    let (_, fewer, said) = refused(fewest.min(whole - 1) / 8);
    assert!(!fewer && said.contains("steps of fewer rows do not fit either") && !said.contains("low-rank"), "{said}");
}

#[test]
fn captures_have_names_values_and_gradients() {
    let model = model(Executor::Cpu);
    let trained = Trained::Factors(factors(&model));
    let options = options().captures(vec![Capture::value("layer_out"), Capture::gradient("layer_out")]);
    let mut gradients = Gradients::new(&model, &trained, &options).expect("gradients");
    let loss = gradients.compute(&documents(), Watch::default()).expect("a loss");
    assert_eq!(loss.captures.len() as u32, 2 * model.summary().block_count);
    for captured in &loss.captures {
        assert_eq!(
            (captured.width, captured.values.len()),
            (model.summary().embedding_length, 32 * captured.width as usize)
        );
        assert!(captured.values.iter().any(|v| *v != 0.0), "{} in layer {}", captured.capture, captured.layer);
    }
    // Every name of the README that a dense model without per-layer embeddings has.
    let readme = include_str!("../README.md");
    let table = readme
        .lines()
        .skip_while(|line| !line.starts_with("| name |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let first = |line: &str| line.split('|').nth(1).expect("a cell").to_string();
    let names: Vec<String> = table
        .flat_map(|line| first(line).split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>())
        .collect();
    assert!(names.len() > 20, "{names:?}");
    let other = |name: &str| name == "experts" || name.starts_with("per_layer") || name == "inp_gate";
    let here: Vec<Capture> = names.iter().filter(|name| !other(name)).map(Capture::value).collect();
    for checkpointing in [Checkpointing::None, Checkpointing::Layer] {
        let options = GradientOptions::default().rows(64).checkpointing(checkpointing).captures(here.clone());
        let mut gradients = Gradients::new(&model, &trained, &options).expect("gradients");
        let loss = gradients.compute(&documents(), Watch::default()).expect("a loss");
        for capture in &here {
            let layers = if capture.name == "embed" { 1 } else { model.summary().block_count };
            let rows = (0..layers)
                .map(|layer| loss.captured(capture, layer).unwrap_or_else(|| panic!("{capture} in layer {layer}")));
            assert!(
                rows.clone()
                    .all(|rows| rows.values.iter().all(|v| v.is_finite()) && rows.values.iter().any(|v| *v != 0.0)),
                "{capture}"
            );
            assert_eq!(
                rows.clone().map(|rows| rows.values.len() as u32).max(),
                rows.map(|rows| 32 * rows.width).min(),
                "{capture}"
            );
        }
        // The residual goes from layer to layer.
        let [out, next] =
            [("layer_out", 0), ("layer_in", 1)].map(|(name, layer)| loss.captured(&Capture::value(name), layer));
        assert_eq!(out.map(|rows| &rows.values), next.map(|rows| &rows.values));
    }
    let unknown = GradientOptions::default().captures(vec![Capture::value("no_such")]);
    let error = Gradients::new(&model, &trained, &unknown).map(|_| ()).expect_err("refused");
    assert!(
        matches!(&error, Error::Capture { name, known } if name == "no_such" && known.contains("layer_out")),
        "{error}"
    );
}
