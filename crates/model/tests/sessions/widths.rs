//! Metadata in other types than the usual ones: every key of every architecture, and of tokenizers.

use gguf::{Gguf, GgufBuilder, MetaValue, ValueType};
use kernels::Executor;
use model::{Error, ModelFile};
use std::collections::BTreeSet;
use std::path::Path;

/// Keys of numbers that all architectures read, with small values that every type can hold.
const COMMON: [(&str, u8); 18] = [
    ("block_count", 2),
    ("context_length", 100),
    ("embedding_length", 64),
    ("feed_forward_length", 96),
    ("attention.head_count", 4),
    ("attention.head_count_kv", 2),
    ("attention.key_length", 16),
    ("attention.value_length", 16),
    ("attention.layer_norm_rms_epsilon", 1),
    ("rope.dimension_count", 16),
    ("rope.freq_base", 100),
    ("rope.scaling.factor", 4),
    ("rope.scaling.original_context_length", 50),
    ("rope.scaling.beta_fast", 32),
    ("rope.scaling.yarn_beta_fast", 32),
    ("rope.scaling.yarn_beta_slow", 1),
    ("rope.scaling.yarn_attn_factor", 1),
    ("rope.scaling.yarn_log_multiplier", 1),
];
const YARN: [(&str, u8); 2] = [("rope.scaling.beta_slow", 1), ("rope.scaling.attn_factor", 1)];
const EXPERTS: [(&str, u8); 3] = [("expert_count", 4), ("expert_used_count", 2), ("expert_feed_forward_length", 32)];
const WINDOW: [(&str, u8); 2] = [("attention.sliding_window", 8), ("final_logit_softcapping", 30)];
const SWA: [(&str, u8); 4] = [
    ("rope.freq_base_swa", 10),
    ("rope.dimension_count_swa", 8),
    ("attention.key_length_swa", 8),
    ("attention.value_length_swa", 8),
];

/// The keys that an architecture reads besides the common ones.
fn own(architecture: &str) -> Vec<(&'static str, u8)> {
    let parts: &[&[(&'static str, u8)]] = match architecture {
        "qwen2moe" => &[&YARN, &EXPERTS, &[("expert_shared_feed_forward_length", 96), ("expert_weights_norm", 1)]],
        "qwen3moe" => &[&EXPERTS, &[("expert_weights_norm", 1), ("norm_top_k_prob", 1)]],
        "gemma2" => &[&WINDOW, &[("attn_logit_softcapping", 50), ("attention.sliding_window_pattern", 2)]],
        "gemma3" => &[&WINDOW, &SWA[..2], &[("rope.global.freq_base", 100), ("rope.local.freq_base", 10)]],
        "gemma3n" => &[
            &WINDOW,
            &SWA[..2],
            &[
                ("rope.freq_base_local", 10),
                ("altup.num_inputs", 4),
                ("altup.active_idx", 0),
                ("attention.shared_kv_layers", 0),
            ],
            &[("embedding_length_per_layer_input", 8), ("attention.sliding_window_pattern", 5)],
        ],
        "gemma4" => {
            &[&WINDOW, &SWA, &EXPERTS, &[("embedding_length_per_layer_input", 8), ("attention.shared_kv_layers", 0)]]
        }
        _ => &[&YARN],
    };
    parts.concat()
}

/// The keys whose value may be an array with an element for each of the two layers.
fn arrays(architecture: &str) -> Vec<(&'static str, [u8; 2])> {
    let heads = [("attention.head_count", [4, 4]), ("attention.head_count_kv", [2, 2])];
    let (sliding, lengths) = (("attention.sliding_window_pattern", [1, 0]), ("feed_forward_length", [96, 96]));
    match architecture {
        "qwen2moe" | "qwen3moe" => heads.to_vec(),
        "qwen2" | "qwen3" => [&heads[..], &[lengths]].concat(),
        "gemma3n" => [&heads[..], &[lengths, sliding, ("activation_sparsity_scale", [1, 0])]].concat(),
        _ => [&heads[..], &[lengths, sliding]].concat(),
    }
}

const ARCHITECTURES: [&str; 8] = ["qwen2", "qwen3", "qwen2moe", "qwen3moe", "gemma2", "gemma3", "gemma3n", "gemma4"];
const INTEGERS: [ValueType; 8] = {
    use ValueType::*;
    [U8, I8, U16, I16, U32, I32, U64, I64]
};
const NUMBERS: [ValueType; 10] = {
    use ValueType::*;
    [U8, I8, U16, I16, U32, I32, U64, I64, F32, F64]
};

/// A small number in a type.
fn number(ty: ValueType, value: u8) -> MetaValue {
    match ty {
        ValueType::U8 => value.into(),
        ValueType::I8 => (value as i8).into(),
        ValueType::U16 => u16::from(value).into(),
        ValueType::I16 => i16::from(value).into(),
        ValueType::U32 => u32::from(value).into(),
        ValueType::I32 => i32::from(value).into(),
        ValueType::U64 => u64::from(value).into(),
        ValueType::I64 => i64::from(value).into(),
        ValueType::F32 => f32::from(value).into(),
        ValueType::F64 => f64::from(value).into(),
        _ => panic!("{ty} is no number"),
    }
}

fn array(ty: ValueType, values: &[u8]) -> MetaValue {
    MetaValue::Array(ty, values.iter().map(|&value| number(ty, value)).collect())
}

/// Whether the values of a key are bools, which no fraction stands for.
fn is_flag(key: &str) -> bool {
    ["expert_weights_norm", "norm_top_k_prob"].contains(&key)
}

/// A file of all keys and without weights, but for one that a length is read from.
fn file(architecture: &str) -> GgufBuilder<'static> {
    let mut file = tokenizer("gpt2").set("general.architecture", architecture);
    for (key, value) in COMMON.iter().copied().chain(own(architecture)) {
        let value = if is_flag(key) { (value == 1).into() } else { number(ValueType::U32, value) };
        file = file.set(format!("{architecture}.{key}"), value);
    }
    for (key, values) in arrays(architecture).into_iter().skip(2) {
        let ty = if key == "activation_sparsity_scale" { ValueType::F32 } else { ValueType::I32 };
        let flags = MetaValue::from(values.map(|value| value == 1).to_vec());
        file = file
            .set(format!("{architecture}.{key}"), if key.ends_with("pattern") { flags } else { array(ty, &values) });
    }
    let floats = COMMON.iter().map(|(key, _)| *key).filter(|key| key.contains("epsilon") || key.contains("freq_base"));
    for key in floats {
        let (_, value) = COMMON.iter().find(|(known, _)| *known == key).unwrap();
        file = file.set(format!("{architecture}.{key}"), f32::from(*value));
    }
    let file = file.set(format!("{architecture}.rope.scaling.type"), "yarn");
    if architecture == "gemma3n" { file.tensor_f32("blk.0.laurel_l.weight", &[64, 2], &[0.0; 128]) } else { file }
}

/// The metadata of a tokenizer with all its keys.
fn tokenizer(model: &str) -> GgufBuilder<'static> {
    let tokens = ["a", "b", "ab", "<eos>", "<bos>", "<unk>", "<pad>", "<eot>", "<eom>"];
    GgufBuilder::new()
        .set("tokenizer.ggml.model", model)
        .set("tokenizer.ggml.pre", "qwen2")
        .set("tokenizer.ggml.tokens", tokens.to_vec())
        .set("tokenizer.ggml.merges", vec!["a b"])
        .set("tokenizer.ggml.token_type", vec![1i32, 1, 1, 3, 3, 2, 3, 3, 3])
        .set("tokenizer.ggml.scores", (0..9).map(|n| n as f32).collect::<Vec<_>>())
}

/// The reason why a file cannot run. All its weights are missing, which is found last.
fn refused(file: &GgufBuilder<'_>) -> Error {
    let file = Gguf::from_bytes(file.to_bytes().unwrap()).unwrap();
    let checked = ModelFile::new(file).and_then(|file| file.check(&Executor::Cpu).map(drop));
    checked.expect_err("there are no weights")
}

#[test]
fn every_key_of_every_architecture_loads_in_every_type_that_holds_its_value() {
    for architecture in ARCHITECTURES {
        let read = |key: &str, value: MetaValue| {
            let error = refused(&file(architecture).set(format!("{architecture}.{key}"), value.clone()));
            assert!(matches!(error, Error::TensorMissing { .. }), "{architecture}.{key} = {value:?}: {error}");
        };
        for (key, value) in COMMON.iter().copied().chain(own(architecture)) {
            let types = if is_flag(key) { &INTEGERS[..] } else { &NUMBERS[..] };
            types.iter().for_each(|&ty| read(key, number(ty, value)));
        }
        for (key, values) in arrays(architecture) {
            let types = if key.ends_with("pattern") { &INTEGERS[..] } else { &NUMBERS[..] };
            types.iter().for_each(|&ty| read(key, array(ty, &values)));
        }
        read("attention.layer_norm_rms_epsilon", 1e-6_f64.into());
        read("rope.freq_base", 1e6_f64.into());
    }
}

#[test]
fn a_value_that_does_not_fit_names_its_key() {
    for architecture in ARCHITECTURES {
        for (key, value) in [
            ("block_count", MetaValue::from(-1_i32)),
            ("block_count", 2.5_f64.into()),
            ("context_length", "long".into()),
            ("embedding_length", u64::MAX.into()),
            ("attention.layer_norm_rms_epsilon", 1e-60_f64.into()),
            ("rope.freq_base", true.into()),
            ("attention.head_count", vec![4_i64, -4].into()),
        ] {
            let error = refused(&file(architecture).set(format!("{architecture}.{key}"), value.clone())).to_string();
            assert!(error.contains(&format!("{architecture}.{key}")), "{value:?}: {error}");
        }
    }
}

/// Every key in the sources is one of these tests.
#[test]
fn no_key_of_an_architecture_is_left_out() {
    let mut read = BTreeSet::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/gpu");
    let mut folders = vec![sources.join("arch")];
    let mut files = vec![sources.join("meta.rs"), sources.join("rope.rs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let functions = [
        "count",
        "count_or",
        "length_or_rows",
        "flag_or",
        "positive",
        "positive_or",
        "optional_positive",
        "per_layer",
        "quantiles",
    ];
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let calls = functions.map(|name| format!(".{name}("));
        for part in calls.iter().flat_map(|call| text.split(call.as_str()).skip(1)) {
            let literal = part
                .strip_prefix("&format!(")
                .unwrap_or(part)
                .strip_prefix('"')
                .and_then(|rest| rest.split('"').next());
            read.extend(literal.map(|key| key.split('{').next().unwrap().to_owned()));
        }
    }
    assert!(read.len() >= 30, "{read:?}");
    let known: Vec<&str> = COMMON
        .iter()
        .map(|(key, _)| *key)
        .chain(ARCHITECTURES.iter().flat_map(|name| own(name)).map(|(key, _)| key))
        .collect();
    let arrays = ARCHITECTURES.iter().flat_map(|name| arrays(name)).map(|(key, _)| key);
    let known: Vec<&str> = known.into_iter().chain(arrays).collect();
    for key in &read {
        assert!(known.iter().any(|known| known.starts_with(key.as_str())), "{key} is in no test");
    }
}

const IDS: [(&str, u8); 6] = [
    ("eos_token_id", 3),
    ("bos_token_id", 4),
    ("unknown_token_id", 5),
    ("padding_token_id", 6),
    ("eot_token_id", 7),
    ("eom_token_id", 8),
];

#[test]
fn every_key_of_a_tokenizer_loads_in_every_type_that_holds_its_value() {
    for model in ["gpt2", "llama", "gemma4"] {
        let of = |key: &str, value: MetaValue| {
            let file = tokenizer(model)
                .set("general.architecture", "qwen3")
                .set(format!("tokenizer.ggml.{key}"), value.clone());
            let file = ModelFile::new(Gguf::from_bytes(file.to_bytes().unwrap()).unwrap());
            file.unwrap_or_else(|error| panic!("{model} {key} = {value:?}: {error}")).tokenizer().clone()
        };
        for ty in NUMBERS {
            for (key, id) in IDS {
                let tokenizer = of(key, number(ty, id));
                let found = match key {
                    "eos_token_id" => tokenizer.eos(),
                    "bos_token_id" => tokenizer.bos(),
                    "unknown_token_id" => tokenizer.unknown(),
                    "padding_token_id" => tokenizer.padding(),
                    _ => tokenizer.ends().first().copied(),
                };
                assert_eq!(found, Some(id.into()), "{key} as {ty}");
            }
            assert_eq!(of("eos_token_ids", array(ty, &[3, 7])).ends(), [3, 7]);
            assert_eq!(of("token_type", array(ty, &[1, 1, 1, 3, 3, 2, 3, 4, 3])).user_defined().count(), 1);
            of("scores", array(ty, &[0, 1, 2, 3, 4, 5, 6, 7, 8]));
        }
        for ty in INTEGERS {
            assert!(of("add_bos_token", number(ty, 1)).adds_bos());
            assert_eq!(of("add_bos_token", number(ty, 0)).adds_bos(), model == "gemma4");
            of("add_space_prefix", number(ty, 1));
        }
    }
}

#[test]
fn an_id_that_no_token_has_names_its_key() {
    for (key, _) in IDS {
        for value in [
            MetaValue::from(-1_i32),
            9_u32.into(),
            u32::MAX.into(),
            u64::MAX.into(),
            "<eos>".into(),
            0.5_f32.into(),
            true.into(),
        ] {
            let key = format!("tokenizer.ggml.{key}");
            let error = refused(&file("qwen3").set(key.clone(), value.clone())).to_string();
            assert!(error.contains(&key), "{value:?}: {error}");
        }
    }
    let listed = refused(&file("qwen3").set("tokenizer.ggml.eos_token_ids", vec![3_i32, -1])).to_string();
    assert!(listed.contains("tokenizer.ggml.eos_token_ids"), "{listed}");
    assert!(matches!(refused(&file("qwen3")), Error::TensorMissing { .. }));
}
