//! Low-rank factors over an NF4 base (QLoRA): gradients are those over the same weights in F32, and
//! training goes on from a checkpoint of the same base only.

#[path = "../../model/tests/common/mod.rs"]
mod common;
#[path = "../../model/tests/common/nf4.rs"]
mod nf4;

use common::{Tiny, both, open};
use kernels::{Executor, Watch};
use model::Model;
use nf4::{dequantized, in_blocks, nf4};
use train::{
    CheckpointError, Checkpointing, Document, Error, FactorPair, Facts, GradientOptions, Gradients, Lora, NO_TARGET,
    Parameter, Rate, Targets, Trained, Trainer, TrainerOptions,
};

/// Two documents.
fn documents() -> Vec<Document> {
    let document = |ids: &[u32]| {
        let targets = ids[1..].iter().copied().chain([NO_TARGET]).collect();
        Document { ids: ids.to_vec(), targets, ..Document::default() }
    };
    vec![document(&[10, 99, 45, 98, 7, 200, 31, 64, 5, 97, 120]), document(&[77, 8, 150])]
}

/// Factors over all linear layers that take them. B is not zero, so that A has gradients too.
fn factors(model: &Model) -> Vec<FactorPair> {
    let new = Targets::default().factors(model.weights(), 4, 1.5, 1).expect("linear layers");
    let b = |pair: &FactorPair| (0..pair.b.len()).map(|i| 0.5 * pair.a[i % pair.a.len()]).collect();
    new.into_iter().map(|pair| FactorPair { b: b(&pair), ..pair }).collect()
}

fn gradients(model: &Model, checkpointing: Checkpointing) -> (u64, Vec<Parameter>) {
    let options = GradientOptions::default().rows(64).checkpointing(checkpointing);
    let mut gradients = Gradients::new(model, &Trained::Factors(factors(model)), &options).expect("gradients");
    let loss = gradients.compute(&documents(), Watch::default()).expect("a loss");
    (loss.loss.to_bits(), gradients.gradients().expect("gradients"))
}

/// The relative L2 difference of the worst parameter.
fn apart(got: &[Parameter], expected: &[Parameter]) -> f64 {
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let one = |(got, expected): (&Parameter, &Parameter)| {
        assert_eq!(got.name, expected.name);
        let size = squares(&mut expected.values.iter().map(|e| f64::from(*e)));
        assert!(size > 0.0, "{}: no gradient", got.name);
        (squares(&mut got.values.iter().zip(&expected.values).map(|(g, e)| f64::from(g - e))) / size).sqrt()
    };
    got.iter().zip(expected).map(one).fold(0.0, f64::max)
}

#[test]
fn gradients_over_nf4_are_those_over_the_dequantized_weights() {
    for tiny in [Tiny::qwen3(), Tiny::qwen2moe(), Tiny::gemma3()].map(in_blocks) {
        let plain = open(&dequantized(&tiny)).expect("a good file").on(Executor::Cpu).expect("loads");
        let expected = gradients(&plain, Checkpointing::None);
        for executor in both() {
            let (kind, bound) = (executor.kind(), if matches!(executor, Executor::Cpu) { 0.0 } else { 1e-4 });
            let model = nf4(&tiny).on(executor).expect("loads");
            let got = gradients(&model, Checkpointing::None);
            let difference = apart(&got.1, &expected.1);
            println!("{} on {kind}: {difference:e}", tiny.architecture);
            assert!(difference <= bound, "{} on {kind}: {difference:e}", tiny.architecture);
            assert_eq!(
                gradients(&model, Checkpointing::Layer),
                got,
                "{} on {kind}: layers recorded again",
                tiny.architecture
            );
        }
    }
}

#[test]
fn a_checkpoint_is_of_its_base() {
    let tiny = in_blocks(Tiny::qwen3());
    let options =
        TrainerOptions::default().gradients(GradientOptions::default().rows(64)).rate(Rate::constant(1e-2)).seed(9);
    let trainer = |model: &Model| Trainer::new(model, Lora::new(4).seed(3), &options).expect("a trainer");
    let model = nf4(&tiny).on(Executor::Cpu).expect("loads");
    let (mut first, folder) = (trainer(&model), tempfile::tempdir().expect("a folder"));
    let step = |trainer: &mut Trainer| trainer.step(&documents(), Watch::default()).expect("a step").loss.loss;
    let losses: Vec<f64> = (0..8).map(|_| step(&mut first)).collect();
    assert!(losses[7] < 0.9 * losses[0], "the loss falls: {losses:?}");
    let path = folder.path().join("checkpoint.safetensors");
    first.save_checkpoint(&path, &Facts::new(), "").expect("saved");
    let mut again = trainer(&model);
    again.load_checkpoint(&path, &Facts::new()).expect("loaded");
    assert_eq!(step(&mut again).to_bits(), step(&mut first).to_bits());
    let plain = tiny.on(&Executor::Cpu);
    match trainer(&plain).load_checkpoint(&path, &Facts::new()) {
        Err(Error::Checkpoint { reason: CheckpointError::Differs { differences }, .. }) => {
            assert_eq!(differences.iter().map(|of| of.what.as_str()).collect::<Vec<_>>(), ["base"]);
        }
        other => panic!("{other:?}"),
    }
}
