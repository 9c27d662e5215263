//! Files with false hyper-parameters or tensors. Each is refused early, with little memory, and the
//! message names the key or the tensor.

mod common;
#[path = "common/counting.rs"]
mod counting;

use common::{Spec, Tiny, gpu, open};
use counting::Counting;
use gguf::{GgmlType, GgufBuilder};
use kernels::Executor;
use model::Model;
use std::fs;
use std::time::{Duration, Instant};

#[global_allocator]
static HEAP: Counting = Counting::new();

/// The message with which both executors refuse a file. Also checks the cost of the refusal.
fn refused(file: &GgufBuilder, what: &str) -> String {
    let messages = [Executor::Cpu, gpu()].map(|executor| {
        let file = file.clone();
        let began = Instant::now();
        let (result, most) = HEAP.most_during(|| open(&file).and_then(|file| file.check(&executor).map(|_| ())));
        let Err(error) = result else { panic!("{what} is accepted on {}", executor.kind()) };
        assert!(began.elapsed() < Duration::from_secs(1), "{what} took {:?}", began.elapsed());
        assert!(most < 32 << 20, "{what} took {most} bytes");
        error.to_string()
    });
    assert_eq!(messages[0], messages[1], "{what}");
    let [message, _] = messages;
    message
}

fn names(file: &GgufBuilder, what: &str, named: &str) {
    let message = refused(file, what);
    assert!(message.contains(named), "{what}: {message:?} does not name {named}");
}

/// A change to the metadata.
type Edit = fn(GgufBuilder<'static>) -> GgufBuilder<'static>;

macro_rules! edits {
    ($($key:literal: $($value:expr),+;)+) => {
        [$($((concat!("qwen3.", $key), stringify!($value), (|file| file.set(concat!("qwen3.", $key), $value)) as Edit)),+),+]
    };
}

#[test]
fn hyper_parameters_out_of_range_are_named() {
    let cases = [
        edits! {
            "block_count": 0u32, 1_000_000_000u32, u64::MAX, -1i32, 2.5f32, "2", true, vec![2u32];
            "context_length": 0u32, u32::MAX, u64::MAX, "long";
            "embedding_length": 0u32, u32::MAX, 1u64 << 40, -64i32;
            "feed_forward_length": 0u32, u32::MAX, vec![96u32], vec![96u32; 3], vec![96u32, 0], vec![96i32, -96], vec![96.5f32; 2];
            "attention.head_count": 0u32, 1_000_000_000u32, vec![3u32], vec![3u32, 0], "3", vec!["3", "3"];
            "attention.head_count_kv": 0u32, 2u32, 4u32, 6u32, u32::MAX, vec![1u32, 2], vec![1u32; 3];
            "attention.key_length": 0u32, 1u32, 33u32, 34u32, 516u32, 1_000_000_000u32, -32i32;
            "attention.layer_norm_rms_epsilon": 0.0f32, -1e-6f32, f32::NAN, f32::INFINITY, 0u32, "1e-6";
            "rope.freq_base": 0.0f32, -1e6f32, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, "1e6";
        }
        .to_vec(),
        // In these cases the message names the key that the changed one must agree with.
        vec![
            ("qwen3.attention.key_length", "values of another length", |f| f.set("qwen3.attention.value_length", 64u32)),
            ("qwen3.attention.key_length", "no length, and 64 over 3", |f| f.remove("qwen3.attention.key_length")),
            ("qwen3.rope.scaling.factor", "linear without a factor", |f| f.set("qwen3.rope.scaling.type", "linear")),
            ("qwen3.rope.scaling.factor", "a factor of 0", |f| {
                f.set("qwen3.rope.scaling.type", "linear").set("qwen3.rope.scaling.factor", 0.0f32)
            }),
            ("longrope", "an unknown scaling", |f| f.set("qwen3.rope.scaling.type", "longrope")),
            ("qwen3.rope.scaling.factor", "yarn without a factor", |f| f.set("qwen3.rope.scaling.type", "yarn")),
            ("qwen3.rope.scaling.type", "a scaling that is a number", |f| f.set("qwen3.rope.scaling.type", 1u32)),
            ("general.architecture", "no architecture", |f| f.remove("general.architecture")),
            ("general.architecture", "an architecture of 3", |f| f.set("general.architecture", 3u32)),
            ("gemma4, qwen2, qwen2moe, qwen3", "another architecture", |f| f.set("general.architecture", "mamba")),
            ("qwen2.", "the other architecture", |f| f.set("general.architecture", "qwen2")),
        ],
    ]
    .concat();
    let tiny = Tiny::qwen3();
    for (key, value, edit) in cases {
        names(&tiny.edited(edit(tiny.metadata()), |_, _| true), &format!("{key} = {value}"), key);
    }
}

#[test]
fn keys_that_are_missing_are_named_unless_they_have_a_default() {
    for tiny in [Tiny::qwen3(), Tiny::qwen2()] {
        let all = ["block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count"];
        for key in [&all[..], &["attention.layer_norm_rms_epsilon"]].concat() {
            let key = format!("{}.{key}", tiny.architecture);
            names(&tiny.edited(tiny.metadata().remove(&key), |_, _| true), "a missing key", &key);
        }
        let file = tiny.edited(tiny.metadata().remove(&format!("{}.rope.freq_base", tiny.architecture)), |_, _| true);
        assert!(open(&file).unwrap().check(&Executor::Cpu).is_ok());
    }
}

#[test]
fn expert_counts_out_of_range_or_missing_are_named() {
    for tiny in [Tiny::qwen3moe(), Tiny::qwen2moe(), Tiny::gemma4_experts()] {
        let cases = [("expert_count", 1025), ("expert_used_count", 0), ("expert_used_count", tiny.experts + 1)];
        for (key, value) in
            cases.into_iter().chain([("expert_feed_forward_length", 0), ("expert_feed_forward_length", u32::MAX)])
        {
            let key = format!("{}.{key}", tiny.architecture);
            names(
                &tiny.edited(tiny.metadata().set(key.clone(), value), |_, _| true),
                &format!("{key} = {value}"),
                &key,
            );
            // Without an expert count, Gemma has no experts. Without the length, it comes from
            // Qwen's tensors.
            let optional =
                ["gemma4.expert_count", "qwen2moe.expert_feed_forward_length", "qwen3moe.expert_feed_forward_length"];
            if !optional.contains(&key.as_str()) {
                names(&tiny.edited(tiny.metadata().remove(&key), |_, _| true), "a missing key", &key);
            }
        }
    }
    for tiny in [Tiny::qwen3moe(), Tiny::qwen2moe()] {
        for (key, value) in [("expert_count", 0), ("expert_weights_norm", 2)] {
            let key = format!("{}.{key}", tiny.architecture);
            names(
                &tiny.edited(tiny.metadata().set(key.clone(), value), |_, _| true),
                &format!("{key} = {value}"),
                &key,
            );
        }
    }
}

#[test]
fn lengths_that_disagree_with_the_tensors_name_the_tensor() {
    let cases: [(&str, &str, u32); 6] = [
        ("embedding_length", "token_embd.weight", 128),
        ("feed_forward_length", "blk.0.ffn_gate.weight", 64),
        ("attention.head_count", "blk.0.attn_q.weight", 2),
        ("attention.key_length", "blk.0.attn_q.weight", 64),
        ("block_count", "blk.2.attn_norm.weight", 3),
        ("block_count", "blk.2.attn_norm.weight", 1024),
    ];
    let tiny = Tiny::qwen3();
    for (key, tensor, value) in cases {
        let metadata = tiny.metadata().set(format!("qwen3.{key}"), value).remove("qwen3.attention.value_length");
        names(&tiny.edited(metadata, |_, _| true), &format!("{key} = {value}"), tensor);
    }
}

/// The names of a model's tensors.
fn tensors(tiny: &Tiny) -> Vec<String> {
    let mut names = vec![];
    tiny.edited(tiny.metadata(), |name, _| {
        names.push(name.to_string());
        true
    });
    names
}

/// The file with one tensor changed.
fn changed(tiny: &Tiny, tensor: &str, change: impl Fn(&mut Spec) -> bool) -> GgufBuilder<'static> {
    tiny.edited(tiny.metadata(), |name, spec| name != tensor || change(spec))
}

#[test]
fn every_tensor_that_is_missing_misshapen_or_unreadable_is_named() {
    let dense = [Tiny::qwen3(), Tiny { tied: false, ..Tiny::qwen2() }];
    let routed = [Tiny { layers: 1, ..Tiny::qwen3moe() }, Tiny { layers: 1, tied: false, ..Tiny::qwen2moe() }];
    let gemmas = [Tiny::gemma3(), Tiny::gemma4(), Tiny::gemma4_dense(), Tiny::gemma4_experts()]
        .map(|tiny| Tiny { tied: false, ..tiny });
    for tiny in dense.into_iter().chain(routed).chain(gemmas) {
        for name in tensors(&tiny) {
            // These tensors are optional: the embedding replaces the output matrix, and in Gemma 4
            // the keys replace the values.
            if name != "output.weight" && !(tiny.architecture == "gemma4" && name.ends_with("attn_v.weight")) {
                names(&changed(&tiny, &name, |_| false), &format!("{name} left out"), &name);
            }
            let shorter = changed(&tiny, &name, |spec| {
                let (last, rest) = spec.dims.split_last_mut().unwrap();
                // A single element cannot be shortened, so it becomes two.
                *last = if *last == 1 { 2 } else { *last - 1 };
                let count = *last * rest.iter().product::<u64>();
                spec.values.resize(count as usize, 0.0);
                true
            });
            // The rows of the embedding are the vocabulary, so the output matrix or the per-layer
            // embedding now disagrees.
            let disagrees = if tiny.per_layer > 0 { "per_layer_token_embd.weight" } else { "output.weight" };
            let named = if name == "token_embd.weight" { disagrees } else { &name };
            names(&shorter, &format!("{name} shorter"), named);
            let deeper = changed(&tiny, &name, |spec| {
                let first = spec.dims[0];
                spec.dims.splice(0..1, if first == 1 { [1, 2] } else { [first / 2, 2] });
                spec.values.resize(spec.dims.iter().product::<u64>() as usize, 0.0);
                true
            });
            names(&deeper, &format!("{name} of three dimensions"), &name);
            for ty in [GgmlType::I32, GgmlType::I8, GgmlType::F64] {
                let other = changed(&tiny, &name, |spec| {
                    spec.ty = ty;
                    true
                });
                names(&other, &format!("{name} as {ty}"), &name);
            }
        }
    }
}

#[test]
fn a_vocabulary_shorter_or_longer_than_the_embedding_is_refused() {
    for tied in [true, false] {
        let tiny = Tiny { tied, ..Tiny::qwen3() };
        for rows in [2, 299, 301] {
            let file = tiny.edited(tiny.metadata(), |name, spec| {
                if ["token_embd.weight", "output.weight"].contains(&name) {
                    spec.dims[1] = rows;
                    spec.values.resize(64 * rows as usize, 0.0);
                }
                true
            });
            names(&file, "a vocabulary of 300", &format!("300 tokens, but token_embd.weight has {rows} rows"));
        }
    }
}

#[test]
fn divisors_of_rope_that_are_none_name_their_tensor() {
    let tiny = Tiny::gemma4();
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let file = tiny.edited(tiny.metadata(), |name, spec| {
            if name == "rope_freqs.weight" {
                spec.values[3] = bad;
            }
            true
        });
        names(&file, &format!("a divisor of {bad}"), "rope_freqs.weight");
    }
}

#[test]
fn tensors_that_nobody_asked_for_are_left_alone() {
    let tiny = Tiny::qwen3();
    let odd = tiny.file().tensor_f32("rope_freqs.weight", &[16], &[1.0; 16]).tensor_of_number(
        "blk.9.odd",
        &[8],
        250,
        vec![0; 8],
    );
    for executor in [Executor::Cpu, gpu()] {
        assert!(open(&odd).unwrap().on(executor).is_ok());
    }
    let unknown = tiny.edited(tiny.metadata(), |name, _| name != "output_norm.weight").tensor_of_number(
        "output_norm.weight",
        &[64],
        250,
        vec![0; 64],
    );
    names(&unknown, "a norm of an unknown type", "output_norm.weight");
}

#[test]
fn a_file_that_is_cut_short_stops_loading_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gguf");
    let cut = |bytes: u64| fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    for executor in [Executor::Cpu, gpu()] {
        Tiny::qwen3().file().save(&path).unwrap();
        let bytes = fs::metadata(&path).unwrap().len();
        let (opened, loaded) = (Model::open(&path).unwrap(), Model::open(&path).unwrap().on(executor.clone()).unwrap());
        let last = opened.file().tensors().iter().max_by_key(|tensor| tensor.offset).unwrap().name().to_string();
        cut(bytes - 64);
        let error = opened.on(executor.clone()).err().unwrap().to_string();
        for part in ["cut.gguf: ", &format!("tensor `{last}`"), "cut short"] {
            assert!(error.contains(part), "{error} lacks {part}");
        }
        // The weights are in memory, so a loaded model does not need the file.
        cut(0);
        let mut session = loaded.session(common::exact(16)).unwrap();
        session.feed(&[1, 2, 3]).unwrap();
        assert!(common::logits(&mut session).0.iter().all(|value| value.is_finite()), "{}", executor.kind());
    }
}
