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
        Document { ids, targets, ..Document::default() }
    };
    let weighted = Document { weights: (0..9).map(|t| f32::from(t % 3u8) / 2.0).collect(), ..document(17, 9) };
    let silent = Document { targets: vec![NO_TARGET; 4], ..document(90, 4) };
    vec![document(3, 12), weighted, silent, document(55, 2), document(120, 7)]
}

fn computed(model: &Model, options: &GradientOptions, documents: &[Document]) -> (Loss, Vec<Parameter>) {
    let factors = "q,v,down".parse::<Targets>().expect("names").factors(model.weights(), 4, 2.0, 1).expect("factors");
    let mut gradients = Gradients::new(model, &Trained::Factors(factors), options).expect("gradients");
    let loss = gradients.compute(documents, Watch::default()).expect("a loss");
    (loss, gradients.gradients().expect("gradients"))
}

#[test]
fn a_packed_batch_has_the_loss_and_the_gradients_of_its_documents_apart() {
    for executor in [Executor::Cpu, Executor::Gpu(Device::auto().expect("an adapter, if only the software one"))] {
        let (kind, model) = (executor.kind(), model(executor));
        for normalize in [Normalize::Tokens, Normalize::Sequences] {
            let options = GradientOptions::default().rows(48).normalize(normalize);
            let (packed, with) = computed(&model, &options, &documents());
            let (apart, without) = computed(&model, &options.packing(false), &documents());
            assert!((packed.loss - apart.loss).abs() <= 1e-6 * apart.loss, "{kind}: {} {}", packed.loss, apart.loss);
            assert_eq!((packed.targets, packed.each.len()), (apart.targets, apart.each.len()));
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(packed.each.iter().zip(&apart.each).all(near), "{kind}: {:?} {:?}", packed.each, apart.each);
            assert_near(&with, &without);
        }
    }
}

fn assert_near(with: &[Parameter], without: &[Parameter]) {
    for (with, without) in with.iter().zip(without) {
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
        let apart = square(&mut with.values.iter().zip(&without.values).map(|(a, b)| f64::from(a - b)));
        let whole = square(&mut without.values.iter().map(|v| f64::from(*v)));
        assert!(apart <= 1e-10 * whole, "{} differs by {}", with.name, (apart / whole).sqrt());
    }
}

#[test]
fn several_learnt_spans_of_one_document_have_the_gradients_of_a_document_for_each() {
    let ids: Vec<u32> = (0..24).map(|t| (3 + 7 * t) % 200 + 10).collect();
    let spans = [3..7, 12..15, 20..24];
    let learnt = |rows: usize, spans: &[std::ops::Range<usize>], continues: bool| {
        let target = |t: usize| if spans.iter().any(|span| span.contains(&t)) { ids[t] + 1 } else { NO_TARGET };
        Document {
            ids: ids[..rows].to_vec(),
            targets: (0..rows).map(target).collect(),
            continues,
            ..Document::default()
        }
    };
    let whole = [learnt(24, &spans, false)];
    let apart: Vec<Document> =
        spans.iter().map(|span| learnt(span.end, std::slice::from_ref(span), span.start > 3)).collect();
    let model = model(Executor::Cpu);
    for normalize in [Normalize::Tokens, Normalize::Sequences] {
        let options = GradientOptions::default().rows(64).normalize(normalize);
        let (one, with) = computed(&model, &options, &whole);
        let (three, without) = computed(&model, &options, &apart);
        assert!((one.loss - three.loss).abs() <= 1e-6 * three.loss, "{normalize:?}: {} {}", one.loss, three.loss);
        assert_eq!((one.targets, one.weight), (three.targets, three.weight));
        assert_near(&with, &without);
    }
}

#[test]
fn means_of_batches_times_their_weights_make_the_mean_of_all() {
    let (model, documents) = (model(Executor::Cpu), documents());
    for normalize in [Normalize::Tokens, Normalize::Sequences] {
        let options = GradientOptions::default().rows(48).normalize(normalize);
        let (all, _) = computed(&model, &options, &documents);
        let parts = documents.chunks(2).map(|part| computed(&model, &options, part).0);
        let (sum, weight) =
            parts.fold((0.0, 0.0), |(sum, all), loss| (sum + loss.loss * loss.weight, all + loss.weight));
        assert!(
            (sum / weight - all.loss).abs() <= 1e-6 * all.loss && (weight - all.weight).abs() < 1e-9,
            "{normalize:?}"
        );
    }
}

#[test]
fn a_mean_of_means_counts_each_document_once() {
    let model = model(Executor::Cpu);
    let (loss, _) =
        computed(&model, &GradientOptions::default().rows(48).normalize(Normalize::Sequences), &documents());
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
