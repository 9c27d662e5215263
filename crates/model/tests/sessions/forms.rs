//! Metadata in both forms, one number for all layers or one per layer, and files with unused
//! tensors.

use crate::common::{Tiny, exact, ids, logits, open};
use gguf::GgufBuilder;
use kernels::Executor;
use model::arch::Cache;

/// Writes the metadata of a tiny model in another form.
type Form = fn(&Tiny, GgufBuilder<'static>) -> GgufBuilder<'static>;

fn logits_of(file: &GgufBuilder) -> Vec<f32> {
    let model = open(file).unwrap().on(Executor::Cpu).unwrap();
    let mut session = model.session(exact(16)).unwrap();
    session.feed(&ids(20, 2)).unwrap();
    logits(&mut session).0
}

fn refusal(file: &GgufBuilder) -> String {
    open(file).and_then(|file| file.check(&Executor::Cpu).map(|_| ())).expect_err("refused").to_string()
}

#[test]
fn numbers_and_arrays_of_the_same_numbers_are_the_same_model() {
    let arrays: Form = |tiny, file| {
        let key = |name: &str| format!("{}.{name}", tiny.architecture);
        let all = |n: u32| vec![n as i32; tiny.layers as usize];
        let file = file
            .set(key("feed_forward_length"), all(tiny.feed_forward))
            .set(key("attention.head_count"), all(tiny.heads));
        file.set(key("attention.head_count_kv"), all(tiny.kv_heads))
    };
    let pattern: Form = |tiny, file| {
        let slides: Vec<bool> = (0..tiny.layers).map(|l| tiny.slides(l)).collect();
        file.set(format!("{}.attention.sliding_window_pattern", tiny.architecture), slides)
    };
    let period: Form = |_, file| file.set("gemma4.attention.sliding_window_pattern", 2_u32);
    let number: Form = |tiny, file| file.set("gemma4.feed_forward_length", tiny.feed_forward);
    for (tiny, form) in [
        (Tiny::qwen2(), arrays),
        (Tiny::qwen3(), arrays),
        (Tiny::gemma2(), arrays),
        (Tiny::gemma3(), arrays),
        (Tiny::gemma2(), pattern),
        (Tiny::gemma3(), pattern),
        (Tiny::gemma4_dense(), period),
        (Tiny::gemma4_dense(), number),
    ] {
        let other = tiny.edited(form(&tiny, tiny.metadata()), |_, _| true);
        assert!(logits_of(&tiny.file()) == logits_of(&other), "{}", tiny.architecture);
    }
}

#[test]
fn layers_of_unequal_sizes_load_as_their_arrays_say() {
    for tiny in [Tiny::qwen2(), Tiny::qwen3(), Tiny::gemma2(), Tiny::gemma3()] {
        let key = |name: &str| format!("{}.{name}", tiny.architecture);
        let mut widths = vec![tiny.feed_forward; tiny.layers as usize];
        widths[1] = 32;
        let metadata = tiny.metadata().set(key("feed_forward_length"), widths.clone());
        let file = tiny.edited(metadata, |name, spec| {
            let narrower = 32 * spec.values.len() / tiny.feed_forward as usize;
            match name {
                "blk.1.ffn_gate.weight" | "blk.1.ffn_up.weight" => {
                    (spec.dims[1], _) = (32, spec.values.truncate(narrower))
                }
                "blk.1.ffn_down.weight" => (spec.dims[0], _) = (32, spec.values.truncate(narrower)),
                _ => {}
            }
            true
        });
        assert!(logits_of(&file).iter().all(|v| v.is_finite()), "{}", tiny.architecture);
        widths[1] = tiny.feed_forward;
        widths[0] = 32;
        let message = refusal(&tiny.edited(tiny.metadata().set(key("feed_forward_length"), widths), |_, _| true));
        assert!(message.contains("blk.0.ffn_gate.weight"), "{message}");
    }
}

#[test]
fn windows_and_sharing_that_do_not_fit_name_their_key() {
    let (pattern, shared, heads) =
        ("attention.sliding_window_pattern", "attention.shared_kv_layers", "attention.head_count_kv");
    let cases: [(&str, Form); 9] = [
        (pattern, |_, f| f.remove("gemma4.attention.sliding_window_pattern")),
        (pattern, |_, f| f.set("gemma4.attention.sliding_window_pattern", vec![true; 5])),
        (pattern, |_, f| f.set("gemma4.attention.sliding_window_pattern", 0_u32)),
        (pattern, |_, f| f.set("gemma4.attention.sliding_window_pattern", vec![2_u32; 6])),
        (shared, |_, f| f.set("gemma4.attention.shared_kv_layers", 6_u32)),
        // The only layer with its own keys has a sliding window, but some sharing layers have full
        // attention.
        (shared, |_, f| f.set("gemma4.attention.shared_kv_layers", 5_u32)),
        (heads, |_, f| f.set("gemma4.attention.head_count_kv", vec![1_u32, 1, 1, 1, 1, 2])),
        ("attention.sliding_window", |_, f| f.remove("gemma4.attention.sliding_window")),
        ("attention.key_length_swa", |_, f| f.set("gemma4.attention.key_length_swa", 18_u32)),
    ];
    let tiny = Tiny::gemma4();
    for (named, form) in cases {
        let message = refusal(&tiny.edited(form(&tiny, tiny.metadata()), |_, _| true));
        assert!(message.contains(&format!("gemma4.{named}")), "{message}");
    }
}

#[test]
fn only_layers_with_keys_of_their_own_have_caches() {
    let caches = |tiny: Tiny| open(&tiny.file()).unwrap().check(&Executor::Cpu).unwrap().summary().caches.clone();
    let (short, long) = (Cache { width: 16, window: Some(8) }, Cache { width: 32, window: None });
    assert_eq!(caches(Tiny::gemma4()), [short, long, short, short]);
    let of = |width, window| Cache { width, window };
    assert_eq!(caches(Tiny::gemma4_dense()), [of(32, Some(8)), of(32, None)]);
    assert_eq!(caches(Tiny::gemma2()), [of(64, Some(8)), of(64, None)]);
    assert_eq!(caches(Tiny::gemma3()), [of(64, Some(8)), of(64, Some(8)), of(64, None)]);
}

#[test]
fn keys_and_values_of_layers_that_share_are_left_alone() {
    let tiny = Tiny::gemma4();
    let odd = |file: GgufBuilder<'static>, name: &str| file.tensor_f32(format!("blk.5.{name}.weight"), &[7], &[1.0; 7]);
    let file = ["attn_k", "attn_v", "attn_k_norm"].into_iter().fold(tiny.file(), odd);
    assert!(logits_of(&tiny.file()) == logits_of(&file));
}

#[test]
fn what_the_metadata_says_changes_the_logits() {
    let cases: [(Tiny, Form); 9] = [
        (Tiny::gemma2(), |_, f| f.set("gemma2.attn_logit_softcapping", 0.5_f32)),
        (Tiny::gemma2(), |_, f| f.set("gemma2.final_logit_softcapping", 5.0_f32)),
        (Tiny::gemma2(), |_, f| f.set("gemma2.attention.sliding_window", 9_u32)),
        (Tiny::gemma3(), |_, f| f.set("gemma3.final_logit_softcapping", 5.0_f32)),
        (Tiny::gemma3(), |_, f| f.set("gemma3.rope.freq_base_swa", 9e3_f32)),
        (Tiny::gemma3(), |_, f| f.set("gemma3.rope.scaling.type", "linear").set("gemma3.rope.scaling.factor", 8.0_f32)),
        (Tiny::gemma4(), |_, f| f.remove("gemma4.final_logit_softcapping")),
        (Tiny::gemma4(), |_, f| f.set("gemma4.rope.dimension_count_swa", 8_u32)),
        (Tiny::qwen3(), |_, f| f.set("qwen3.rope.dimension_count", 16_u32)),
    ];
    for (n, (tiny, form)) in cases.into_iter().enumerate() {
        let changed = tiny.edited(form(&tiny, tiny.metadata()), |_, _| true);
        assert!(logits_of(&tiny.file()) != logits_of(&changed), "case {n}");
    }
}
