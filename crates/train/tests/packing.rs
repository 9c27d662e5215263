//! Losses of a batch of a small model, packed and not: no document sees another.

use kernels::{Device, Executor, Watch};
use model::Model;
use std::path::Path;
use train::{Document, GradientOptions, Gradients, Loss, NO_TARGET, Normalize, Parameter, Targets, Trained};

fn model(executor: Executor) -> Model {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/qwen3tied/qwen3tied-F16.gguf");
    Model::open(file).expect("a file").on(executor).expect("a model")
}

/// Documents of several lengths, one without targets, some with weights.
fn documents() -> Vec<Document> {
    let document = |first: u32, len: u32| {
        let ids: Vec<u32> = (0..len).map(|t| (first + 7 * t) % 200 + 10).collect();
        let targets = ids[1..].iter().copied().chain([NO_TARGET]).collect();
        Document { ids, targets, weights: vec![] }
    };
    let weighted = Document { weights: (0..9).map(|t| f32::from(t % 3u8) / 2.0).collect(), ..document(17, 9) };
    let silent = Document { targets: vec![NO_TARGET; 4], ..document(90, 4) };
    vec![document(3, 12), weighted, silent, document(55, 2), document(120, 7)]
}

fn computed(model: &Model, options: &GradientOptions) -> (Loss, Vec<Parameter>) {
    let factors = "q,v,down".parse::<Targets>().expect("names").factors(model.weights(), 4, 2.0, 1).expect("factors");
    let mut gradients = Gradients::new(model, &Trained::Factors(factors), options).expect("gradients");
    let loss = gradients.compute(&documents(), Watch::default()).expect("a loss");
    (loss, gradients.gradients().expect("gradients"))
}

#[test]
fn a_packed_batch_has_the_loss_and_the_gradients_of_its_documents_apart() {
    for executor in [Executor::Cpu, Executor::Gpu(Device::auto().expect("an adapter, if only the software one"))] {
        let (kind, model) = (executor.kind(), model(executor));
        for normalize in [Normalize::Tokens, Normalize::Sequences] {
            let options = GradientOptions::default().rows(48).normalize(normalize);
            let (packed, with) = computed(&model, &options);
            let (apart, without) = computed(&model, &options.packing(false));
            assert!((packed.loss - apart.loss).abs() <= 1e-6 * apart.loss, "{kind}: {} {}", packed.loss, apart.loss);
            assert_eq!((packed.targets, packed.each.len()), (apart.targets, apart.each.len()));
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(packed.each.iter().zip(&apart.each).all(near), "{kind}: {:?} {:?}", packed.each, apart.each);
            for (with, without) in with.iter().zip(&without) {
                let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
                let apart = square(&mut with.values.iter().zip(&without.values).map(|(a, b)| f64::from(a - b)));
                let whole = square(&mut without.values.iter().map(|v| f64::from(*v)));
                assert!(apart <= 1e-10 * whole, "{kind}: {} differs by {}", with.name, (apart / whole).sqrt());
            }
        }
    }
}

#[test]
fn a_mean_of_means_counts_each_document_once() {
    let model = model(Executor::Cpu);
    let (loss, _) = computed(&model, &GradientOptions::default().rows(48).normalize(Normalize::Sequences));
    let (mut at, mut means) = (0, vec![]);
    for document in documents() {
        let targets = document.targets.iter().enumerate().filter(|(_, target)| **target != NO_TARGET);
        let (mut sum, mut weights) = (0.0, 0.0);
        for (t, _) in targets {
            let weight = document.weights.get(t).map_or(1.0, |weight| f64::from(*weight));
            (sum, weights) = (sum + weight * f64::from(loss.each[at]), weights + weight);
            at += 1;
        }
        means.extend((weights > 0.0).then(|| sum / weights));
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    assert!(means.len() == 4 && (loss.loss - mean).abs() <= 1e-6 * mean, "{} {mean}", loss.loss);
}
