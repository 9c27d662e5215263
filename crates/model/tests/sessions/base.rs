//! Models whose linear layers become NF4 while they load.

use crate::common::{self, F16, Tiny, both, exact, ids, logits, open, worst};
use gguf::{GgmlType, GgufBuilder};
use kernels::Executor;
use model::{Base, Error, Model, ModelFile, SnapshotError};

/// The largest difference between f32 on a GPU and the f64 sums of the oracles.
const EXECUTORS: f32 = 1e-5;

/// Rows of whole blocks, in F16.
fn qwen3() -> Tiny {
    Tiny { types: F16, ..Tiny::qwen3().mixed() }
}

fn nf4(tiny: &Tiny) -> ModelFile {
    open(&tiny.file()).unwrap().with_base(Base::Nf4)
}

/// The matrices of attention and of feed-forward networks, without routers.
fn is_linear(name: &str) -> bool {
    let parts = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "_exps", "_shexp"];
    let part = name.trim_end_matches(".weight").rsplit('.').next().unwrap();
    name.ends_with(".weight") && !name.contains("_inp") && parts.iter().any(|known| part == *known || known.starts_with('_') && part.ends_with(known))
}

/// The file with the values of NF4 in its linear layers, as F32.
fn dequantized(tiny: &Tiny) -> GgufBuilder<'static> {
    tiny.edited(tiny.metadata(), |name, spec| {
        if is_linear(name) {
            let cols = spec.dims[0] as usize;
            let stored = gguf::quantize(spec.ty, &spec.values, cols).unwrap();
            gguf::dequantize(spec.ty, &stored, &mut spec.values).unwrap();
            let blocks = gguf::quantize(GgmlType::NF4, &spec.values, cols).unwrap();
            gguf::dequantize(GgmlType::NF4, &blocks, &mut spec.values).unwrap();
            spec.ty = GgmlType::F32;
        }
        true
    })
}

fn logits_of(model: &Model) -> Vec<f32> {
    let mut session = model.session(exact(8)).unwrap();
    session.feed(&ids(19, 3)).unwrap();
    logits(&mut session).0
}

#[test]
fn logits_are_those_of_the_dequantized_weights() {
    let experts = |tiny: Tiny| Tiny { feed_forward: 192, ..Tiny { types: F16, ..tiny.mixed() } };
    let of = |types| Tiny { types, ..qwen3() };
    let all = [qwen3(), of(&[GgmlType::BF16]), of(&[GgmlType::F32]), experts(Tiny::qwen3moe()), experts(Tiny::qwen2moe())];
    for tiny in all {
        let what = format!("{} {:?}", tiny.architecture, tiny.types);
        let expected = logits_of(&open(&dequantized(&tiny)).unwrap().on(Executor::Cpu).unwrap());
        let exact = logits_of(&tiny.on(&Executor::Cpu));
        assert!(worst(&exact, &expected) > 0.01, "{what}: NF4 changes the logits");
        for executor in both() {
            let kind = executor.kind();
            let apart = worst(&expected, &logits_of(&nf4(&tiny).on(executor).unwrap()));
            let bound = if kind == Executor::Cpu.kind() { 0.0 } else { EXECUTORS };
            assert!(apart <= bound, "{what} on {kind}: {apart:e}");
        }
    }
}

#[test]
fn linear_layers_are_nf4_and_nothing_else_is() {
    let tiny = Tiny { feed_forward: 192, ..Tiny { types: F16, ..Tiny::qwen2moe().mixed() } };
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
        let elements: u64 = tiny.on(&executor).weights().iter().filter(|(name, _)| is_linear(name)).map(|(_, w)| u64::from(w.rows * w.cols)).sum();
        let saved = bytes(open(&tiny.file()).unwrap()) - bytes(nf4(&tiny));
        // 16 bits less 4.5; each of the 14 buffers on a device begins with the codebook.
        let tables = if executor.kind() == Executor::Cpu.kind() { 0 } else { 14 * 64 };
        assert_eq!(saved, elements * 23 / 16 - tables, "{}", executor.kind());
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
    let refused = |tiny: &Tiny| nf4(tiny).check(&Executor::Cpu).map(drop).unwrap_err().to_string();
    let file = Tiny { types: &[GgmlType::F16, GgmlType::F16, GgmlType::Q8_0], ..qwen3() };
    let expected = "tensor blk.0.attn_k.weight is Q8_0, and NF4 is made of F16, BF16 or F32; load this file without an NF4 base, or \
                    take a file that is not quantized";
    assert_eq!(refused(&file), expected);
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
        let file = common::open(&file).unwrap().with_base(Base::Nf4);
        let refused = file.on(executor).map(drop).unwrap_err().to_string();
        assert_eq!(refused, "tensor blk.1.ffn_up.weight cannot become NF4: element 777 is inf; only finite values can be quantized");
    }
}
