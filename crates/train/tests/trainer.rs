//! Training of a small model: going on from a checkpoint, micro-batches, cancelled steps, steps
//! that are skipped.

use kernels::{Device, Executor, Phase, Progress, Watch};
use model::Model;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use train::{
    Begin, CheckpointError, Checkpointing, Document, Error, Facts, Folder, FolderError, Full, GradientOptions, Lora,
    NO_TARGET, Parameter, Rate, SKIPS, Trainer, TrainerOptions,
};

fn model(executor: Executor) -> Model {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/qwen3tied/qwen3tied-F16.gguf");
    Model::open(file).expect("a file").on(executor).expect("a model")
}

fn gpu() -> Executor {
    Executor::Gpu(Device::auto().expect("an adapter, if only the software one"))
}

fn lora() -> Lora {
    lora_of(6)
}

/// Factors of this rank, and of an alpha that does not follow it.
fn lora_of(rank: u32) -> Lora {
    Lora::new(rank).alpha(12.0).targets("q,down".parse().expect("names")).dropout(0.1).seed(3)
}

fn options() -> TrainerOptions {
    TrainerOptions::default().gradients(GradientOptions::default().rows(64)).rate(Rate::constant(5e-3)).seed(9)
}

/// The n-th batch: two documents.
fn batch(n: u32) -> Vec<Document> {
    let document = |first: u32, len: u32| {
        let ids: Vec<u32> = (0..len).map(|t| (first + 7 * t) % 200 + 10).collect();
        let targets = ids[1..].iter().copied().chain([NO_TARGET]).collect();
        Document { ids, targets, ..Document::default() }
    };
    vec![document(n * 31, 12), document(n * 17 + 5, 20)]
}

/// Runs the batches `from..to`. Returns the losses.
fn steps(trainer: &mut Trainer, from: u32, to: u32) -> Vec<u64> {
    (from..to).map(|n| trainer.step(&batch(n), Watch::default()).expect("a step").loss.loss.to_bits()).collect()
}

fn bits(parameters: &[Parameter]) -> Vec<u32> {
    parameters.iter().flat_map(|of| of.values.iter().map(|v| v.to_bits())).collect()
}

fn facts(data: &str) -> Facts {
    Facts::from([("data".to_string(), data.to_string())])
}

#[test]
fn a_run_that_goes_on_has_the_bits_of_one_that_was_never_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    for executor in [Executor::Cpu, gpu()] {
        let (kind, model) = (executor.kind(), model(executor));
        let trainer = || Trainer::new(&model, lora(), &options()).expect("a trainer");
        let mut whole = trainer();
        let losses = steps(&mut whole, 0, 5);
        assert!(losses.windows(2).all(|two| two[0] != two[1]), "{kind}: {losses:?}");
        let (mut first, path) = (trainer(), folder.path().join("checkpoint.safetensors"));
        let mut again = steps(&mut first, 0, 2);
        first.save_checkpoint(&path, &facts("a"), "epoch 0, batch 2").expect("saved");
        let mut second = trainer();
        // What the trainer did before is forgotten.
        steps(&mut second, 7, 8);
        assert_eq!(second.load_checkpoint(&path, &facts("a")).expect("loaded").position, "epoch 0, batch 2");
        assert_eq!((second.tally(), second.tally().steps), (first.tally(), 2));
        again.extend(steps(&mut second, 2, 5));
        assert_eq!(again, losses, "{kind}");
        let [whole, second] = [&whole, &second].map(|trainer| bits(&trainer.parameters().expect("parameters")));
        assert!(whole == second, "{kind}: other parameters");
    }
}

#[test]
fn what_is_no_checkpoint_of_this_run_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkpoint.safetensors");
    let model = model(Executor::Cpu);
    let mut trainer = Trainer::new(&model, lora(), &options()).expect("a trainer");
    steps(&mut trainer, 0, 1);
    trainer.save_checkpoint(&path, &facts("a"), "").expect("saved");
    let bytes = std::fs::read(&path).expect("a file");
    steps(&mut trainer, 1, 2);
    let (before, tally) = (bits(&trainer.parameters().expect("parameters")), trainer.tally());
    let mut refused = |bytes: &[u8], now: &Facts| {
        std::fs::write(&path, bytes).expect("written");
        match trainer.load_checkpoint(&path, now) {
            Err(Error::Checkpoint { file, reason }) => {
                assert_eq!(file, path.display().to_string());
                reason
            }
            other => panic!("{other:?}"),
        }
    };
    for len in [0, 7, 8, 9, 1000, bytes.len() / 2, bytes.len() - 33, bytes.len() - 1] {
        let reason = refused(&bytes[..len], &facts("a"));
        assert!(
            matches!(reason, CheckpointError::Truncated { .. } | CheckpointError::Foreign { .. }),
            "{len}: {reason}"
        );
    }
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) as usize;
    for at in [8 + header, bytes.len() / 2, bytes.len() - 33, bytes.len() - 1] {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(matches!(refused(&other, &facts("a")), CheckpointError::Altered), "{at}");
    }
    let replaced = |from: &str, to: &str| {
        let text = String::from_utf8(bytes[8..8 + header].to_vec()).expect("a header");
        assert!(text.contains(from) && from.len() == to.len(), "{text}");
        [&bytes[..8], text.replace(from, to).as_bytes(), &bytes[8 + header..]].concat()
    };
    assert!(matches!(
        refused(&replaced("\\\"version\\\":2", "\\\"version\\\":3"), &facts("a")),
        CheckpointError::Version { found: 3, .. }
    ));
    assert!(matches!(refused(&replaced("\"weft\"", "\"wept\""), &facts("a")), CheckpointError::Foreign { .. }));
    assert!(matches!(
        refused(&replaced("p.blk.0.attn_q", "p.blk.9.attn_q"), &facts("a")),
        CheckpointError::Tensors { .. }
    ));
    assert!(matches!(refused(b"not a checkpoint at all", &facts("a")), CheckpointError::Foreign { .. }));
    let other = refused(&bytes, &facts("b")).to_string();
    assert_eq!(other, "the run cannot go on with other settings: data was a, now b");
    let changed = [
        ("seed was 9, now 1", lora(), options().seed(1)),
        ("lr was 0.005, now 0.001", lora(), options().rate(Rate::constant(1e-3))),
        ("dropout was 0.1, now 0", lora().dropout(0.0), options()),
        ("rank was 6, now 7", lora_of(7), options()),
        ("targets was q,down, now all", lora().targets("all".parse().expect("a group")), options()),
        ("clip was 1, now 0", lora(), options().clip(None)),
    ];
    std::fs::write(&path, &bytes).expect("written");
    for (expected, lora, options) in changed {
        let error = Trainer::new(&model, lora, &options)
            .expect("a trainer")
            .load_checkpoint(&path, &facts("a"))
            .expect_err("refused");
        assert!(error.to_string().ends_with(&format!("other settings: {expected}")), "{error}");
    }
    assert!(
        (bits(&trainer.parameters().expect("parameters")), trainer.tally()) == (before, tally),
        "a refused checkpoint changed something"
    );
}

#[test]
fn micro_batches_give_the_loss_and_the_update_of_one_batch() {
    for executor in [Executor::Cpu, gpu()] {
        let (kind, model) = (executor.kind(), model(executor));
        // Dropout draws other elements in another micro-batch.
        let run = |rows: u32, checkpointing: Checkpointing| {
            let gradients = GradientOptions::default().rows(rows).checkpointing(checkpointing);
            let long: Vec<Document> = (0..3).flat_map(|n| batch(n + 40).into_iter().chain(batch(n + 50))).collect();
            let mut trainer =
                Trainer::new(&model, lora().dropout(0.0), &options().gradients(gradients)).expect("a trainer");
            let first = trainer.parameters().expect("parameters");
            let loss = trainer.step(&long, Watch::default()).expect("a step").loss.loss;
            let values = |of: &[Parameter]| -> Vec<f64> {
                of.iter().flat_map(|of| of.values.iter().map(|v| f64::from(*v))).collect()
            };
            let last = values(&trainer.parameters().expect("parameters"));
            (loss, last.iter().zip(values(&first)).map(|(b, a)| b - a).collect::<Vec<f64>>())
        };
        let ((loss, update), (micro, parts)) = (run(192, Checkpointing::None), run(64, Checkpointing::Layer));
        assert!((loss - micro).abs() <= 1e-6 * loss, "{kind}: {loss} {micro}");
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
        let mut apart: Vec<f64> = update.iter().zip(&parts).map(|(a, b)| a - b).collect();
        // The first step of AdamW moves every element by the rate: an element whose gradient is
        // near zero may move the other way.
        apart.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        apart.truncate(apart.len() - 8);
        let relative = (square(&mut apart.iter().copied()) / square(&mut update.iter().copied())).sqrt();
        assert!(relative <= 1e-6, "{kind}: updates differ by {relative}");
    }
}

#[test]
fn two_runs_never_share_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Folder::open(folder.path(), Begin::New).expect("a folder");
    for begin in [Begin::Resume, Begin::Force] {
        let error = Folder::open(folder.path(), begin).map(drop).expect_err("busy");
        assert!(matches!(&error, Error::Folder { reason: FolderError::Busy, .. }), "{error}");
    }
    drop(first);
    Folder::open(folder.path(), Begin::Resume).expect("a folder without a run");
}

#[test]
fn a_cancelled_step_leaves_nothing_behind() {
    for executor in [Executor::Cpu, gpu()] {
        let (kind, model) = (executor.kind(), model(executor));
        let mut trainer = Trainer::new(&model, lora(), &options()).expect("a trainer");
        steps(&mut trainer, 0, 1);
        let (before, tally) = (bits(&trainer.parameters().expect("parameters")), trainer.tally());
        for after in [0, 2, 5] {
            let (cancel, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
            let progress = |_: Phase, _: Progress| {
                if seen.fetch_add(1, Ordering::Relaxed) == after {
                    cancel.store(true, Ordering::Relaxed);
                }
            };
            let watch = Watch { cancel: Some(&cancel), progress: Some(&progress) };
            let error = trainer.step(&batch(1), watch).expect_err("cancelled");
            assert!(matches!(error, Error::Kernels(kernels::Error::Cancelled)), "{kind}: {error}");
            assert!(
                bits(&trainer.parameters().expect("parameters")) == before && trainer.tally() == tally,
                "{kind}: cut {after}"
            );
        }
        let rest = steps(&mut trainer, 1, 3);
        let mut whole = Trainer::new(&model, lora(), &options()).expect("a trainer");
        assert_eq!(steps(&mut whole, 0, 3)[1..], rest, "{kind}");
    }
}

#[test]
fn a_loss_that_is_no_number_changes_nothing_and_is_named() {
    for executor in [Executor::Cpu, gpu()] {
        let (kind, model) = (executor.kind(), model(executor));
        let start = Trainer::new(&model, lora(), &options()).expect("a trainer").factors().expect("factors");
        let mut broken = start.clone();
        broken[1].a[5] = f32::INFINITY;
        let mut trainer = Trainer::new(&model, lora().init(broken.clone()), &options()).expect("a trainer");
        for n in 1..SKIPS {
            let step = trainer.step(&batch(n), Watch::default()).expect("a step");
            let first = step.skipped.expect("skipped");
            assert!(first.ends_with("in layer 0"), "{kind}: {first}");
            assert_eq!(
                (step.number, trainer.tally().updates, trainer.tally().skipped),
                (u64::from(n), 0, u64::from(n))
            );
        }
        let error = trainer.step(&batch(0), Watch::default()).expect_err("ten in a row");
        assert!(matches!(error, Error::NotFinite { step: 10, steps: 10, .. }), "{kind}: {error}");
        let kept = trainer.factors().expect("factors");
        assert!(
            kept.iter().zip(&broken).all(|(a, b)| a.a == b.a && a.b == b.b),
            "{kind}: a skipped step changed a factor"
        );
    }
}

#[test]
fn documents_are_judged_without_dropout_and_without_a_change() {
    let model = model(Executor::Cpu);
    let mut trainer = Trainer::new(&model, lora().dropout(0.5), &options()).expect("a trainer");
    steps(&mut trainer, 0, 2);
    let before = bits(&trainer.parameters().expect("parameters"));
    let judged = trainer.evaluate(&batch(3), Watch::default()).expect("a loss");
    assert_eq!(judged.targets, 30);
    let factors = trainer.factors().expect("factors");
    let mut plain = Trainer::new(&model, lora().dropout(0.0).init(factors), &options()).expect("a trainer");
    let step = plain.step(&batch(3), Watch::default()).expect("a step");
    assert_eq!(step.loss.loss.to_bits(), judged.loss.to_bits());
    let dropped = trainer.step(&batch(3), Watch::default()).expect("a step").loss.loss;
    assert_ne!(dropped.to_bits(), judged.loss.to_bits());
    assert_ne!(bits(&trainer.parameters().expect("parameters")), before);
}

#[test]
fn all_weights_learn_from_nothing() {
    let model = model(Executor::Cpu);
    let options = options().rate(Rate::constant(2e-3));
    let mut trainer = Trainer::new(&model, Full::default().fresh(5), &options).expect("a trainer");
    let losses: Vec<f64> =
        (0..6).map(|_| trainer.step(&batch(0), Watch::default()).expect("a step").loss.loss).collect();
    // Random logits of a small deviation: near the logarithm of the vocabulary.
    let expected = f64::from(model.summary().vocabulary).ln();
    assert!((losses[0] - expected).abs() < 0.5 && losses[5] < losses[0] - 1.0, "{losses:?}, {expected} at first");
    assert!(trainer.factors().expect("none").is_empty());
}

/// `weft bench --train` divides the time that a device needs at least by the time of a step.
#[test]
fn the_work_of_a_step_is_that_of_its_rows_and_not_of_its_room() {
    let model = model(Executor::Cpu);
    let work = |room: u32, rows: u32, targets: u32| {
        let options = TrainerOptions::default().gradients(GradientOptions::default().rows(room));
        Trainer::new(&model, lora().dropout(0.0), &options).expect("a trainer").work(rows, targets).flops
    };
    let eight = work(8, 8, 7);
    // Steps of 8 rows have room for 64.
    assert_eq!(work(64, 8, 7), eight);
    assert!(work(64, 64, 56) > 7 * eight && work(64, 64, 56) <= 8 * eight, "{eight}");
    assert!(work(64, 64, 63) > work(64, 64, 56), "the head counts targets");
}
