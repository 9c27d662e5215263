//! Models whose linear layers become NF4 while they load.

use crate::common::{Tiny, both, exact, ids, logits, open, worst};
use crate::nf4::{dequantized, in_blocks, is_linear, nf4};
use gguf::GgmlType;
use kernels::{Executor, Weight};
use model::{Base, Error, Model, ModelFile, SnapshotError};

/// The largest difference between f32 on a GPU and the f64 sums of the oracles.
const EXECUTORS: f32 = 1e-5;

fn qwen3() -> Tiny {
    in_blocks(Tiny::qwen3())
}

fn logits_of(model: &Model) -> Vec<f32> {
    let mut session = model.session(exact(8)).unwrap();
    session.feed(&ids(19, 3)).unwrap();
    logits(&mut session).0
}

#[test]
fn logits_are_those_of_the_dequantized_weights() {
    let of = |types| Tiny { types, ..qwen3() };
    let all = [
        qwen3(),
        of(&[GgmlType::BF16]),
        of(&[GgmlType::F32]),
        in_blocks(Tiny::qwen3moe()),
        in_blocks(Tiny::qwen2moe()),
    ];
    for tiny in all {
        let what = format!("{} {:?}", tiny.architecture, tiny.types);
        let expected = logits_of(&open(&dequantized(&tiny)).unwrap().on(Executor::Cpu).unwrap());
        let exact = logits_of(&tiny.on(&Executor::Cpu));
        assert!(worst(&exact, &expected) > 0.01, "{what}: NF4 changes the logits");
        for executor in both() {
            let (kind, bound) = (executor.kind(), if matches!(executor, Executor::Cpu) { 0.0 } else { EXECUTORS });
            let apart = worst(&expected, &logits_of(&nf4(&tiny).on(executor).unwrap()));
            assert!(apart <= bound, "{what} on {kind}: {apart:e}");
        }
    }
}

#[test]
fn linear_layers_are_nf4_and_nothing_else_is() {
    let tiny = in_blocks(Tiny::qwen2moe());
    let (plain, model) = (tiny.on(&Executor::Cpu), nf4(&tiny).on(Executor::Cpu).unwrap());
    let mut changed = 0;
    for ((name, before), (same, after)) in plain.weights().iter().zip(model.weights().iter()) {
        assert_eq!(name, same);
        assert_eq!(after.ty, if is_linear(name) { GgmlType::NF4 } else { before.ty }, "{name}");
        changed += usize::from(is_linear(name));
    }
    assert_eq!(changed, 2 * (4 + 3 + 3), "attention, experts and the shared expert of two layers");
    assert_eq!((plain.base(), model.base()), (Base::AsStored, Base::Nf4));
}

#[test]
fn sizes_are_those_of_nf4_before_and_after_loading() {
    let tiny = qwen3();
    for executor in both() {
        let bytes = |file: ModelFile| {
            let told = file.check(&executor).unwrap().needs(&exact(8)).unwrap().weights.0;
            let loaded = file.on(executor.clone()).unwrap().weight_bytes();
            assert_eq!(told, loaded, "{}", executor.kind());
            told
        };
        let saved = |(_, w): (&str, Weight)| {
            let (row, table) = (w.cols / 64 * 36, 16 * 4);
            let bytes = if matches!(executor, Executor::Cpu) {
                w.rows * row
            } else {
                table + w.rows * row.next_multiple_of(16)
            };
            u64::from(2 * w.rows * w.cols - bytes)
        };
        let expected: u64 = tiny.on(&executor).weights().iter().filter(|(name, _)| is_linear(name)).map(saved).sum();
        assert_eq!(bytes(open(&tiny.file()).unwrap()) - bytes(nf4(&tiny)), expected, "{}", executor.kind());
    }
}

#[test]
fn a_snapshot_of_another_base_is_refused_and_a_device_opened_again_keeps_it() {
    let (plain, model) = (qwen3().on(&Executor::Cpu), nf4(&qwen3()).on(Executor::Cpu).unwrap());
    assert_ne!(plain.digest().unwrap(), model.digest().unwrap());
    let again = model.to_file().on(Executor::Cpu).unwrap();
    assert_eq!((again.base(), again.digest().unwrap()), (Base::Nf4, model.digest().unwrap()));
    assert_eq!(logits_of(&again), logits_of(&model));
    let mut session = model.session(exact(8)).unwrap();
    session.feed(&ids(5, 1)).unwrap();
    let mut bytes = vec![];
    session.save(&mut bytes).unwrap();
    let refused = plain.session(exact(8)).unwrap().load(&mut &bytes[..]).unwrap_err();
    assert!(matches!(refused, Error::Snapshot(SnapshotError::Model)), "{refused}");
    again.session(exact(8)).unwrap().load(&mut &bytes[..]).unwrap();
}

#[test]
fn a_quantized_layer_is_refused_by_name() {
    let file = Tiny { types: &[GgmlType::F16, GgmlType::F16, GgmlType::Q8_0], ..qwen3() };
    let refused = nf4(&file).check(&Executor::Cpu).map(drop).unwrap_err().to_string();
    let expected = "tensor blk.0.attn_k.weight is Q8_0, and NF4 is made of F16, BF16 or F32; load this file without an NF4 base, or \
                    take a file that is not quantized";
    assert_eq!(refused, expected);
}

#[test]
fn rows_of_partial_blocks_are_refused_by_name() {
    let refused = nf4(&Tiny::qwen3()).on(Executor::Cpu).map(drop).unwrap_err().to_string();
    let expected = "tensor blk.0.attn_output.weight has rows of 96 elements, and blocks of NF4 have 64; load this file without an NF4 base";
    assert_eq!(refused, expected);
}

#[test]
fn a_weight_that_is_not_finite_is_refused_by_name() {
    let tiny = qwen3();
    let file = tiny.edited(tiny.metadata(), |name, spec| {
        if name == "blk.1.ffn_up.weight" {
            spec.values[777] = f32::INFINITY;
        }
        true
    });
    for executor in both() {
        let file = open(&file).unwrap().with_base(Base::Nf4);
        let refused = file.on(executor).map(drop).unwrap_err().to_string();
        assert_eq!(
            refused,
            "tensor blk.1.ffn_up.weight cannot become NF4: element 777 is inf; only finite values can be quantized"
        );
    }
}
