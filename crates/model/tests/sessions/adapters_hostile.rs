//! Damaged, foreign and false adapters. Each is refused without a panic, and the message names the
//! tensor or the key.

use crate::common::{self, Tiny, exact, open};
use crate::lora::{Lora, safetensors};
use gguf::{GgmlType, Gguf, GgufBuilder};
use kernels::Executor;
use kernels::testing::kernel::random::Gen;
use model::{AdapterError, AdapterFile, Applied, Error};
use safetensors::Dtype;
use std::sync::Arc;

const GATE: &str = "base_model.model.model.layers.1.mlp.gate_proj.lora_B.weight";
const VALUE: &str = "base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight";

type Tensors = std::collections::HashMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// Checks an adapter of either form against a model, without loading.
fn held(tiny: &Tiny, file: Result<AdapterFile, AdapterError>) -> Result<(), Error> {
    let mut checked = open(&tiny.file()).expect("a good model").check(&Executor::Cpu)?;
    checked.adapt(&file?, 1.0).map(drop)
}

fn peft(config: &str, bytes: Vec<u8>) -> Result<AdapterFile, AdapterError> {
    AdapterFile::from_peft(config, Box::new(bytes))
}

fn gguf(bytes: Vec<u8>) -> Result<AdapterFile, AdapterError> {
    AdapterFile::from_gguf(Gguf::from_bytes(bytes)?)
}

#[track_caller]
fn names(result: Result<(), Error>, parts: &[&str]) {
    let message = result.expect_err("it is accepted").to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{message:?} lacks one of {parts:?}");
}

#[test]
fn misshapen_and_missing_factors_are_named_with_both_shapes() {
    let tiny = Tiny::qwen3();
    let lora = Lora::whole(&tiny, 4, 1);
    let with = |edit: &dyn Fn(&mut Tensors)| {
        let mut tensors = lora.tensors(GgmlType::F32);
        edit(&mut tensors);
        held(&tiny, peft(&lora.config(""), safetensors(&tensors)))
    };
    assert!(with(&|_| ()).is_ok());
    let cut = |name: &'static str, shape: [usize; 2]| {
        move |tensors: &mut Tensors| {
            tensors.insert(name.to_string(), (Dtype::F32, shape.to_vec(), vec![0; 4 * shape[0] * shape[1]]));
        }
    };
    names(with(&cut(GATE, [95, 4])), &[GATE, "[95, 4]", "[96, 4]"]);
    names(with(&cut(VALUE, [4, 63])), &[VALUE, "[4, 63]", "[4, 64]"]);
    // The rank differs from the configuration's.
    names(with(&cut(GATE, [96, 8])), &[GATE, "[96, 8]", "adapter_config.json", "[96, 4]"]);
    names(with(&cut(VALUE, [3, 64])), &[VALUE, "[3, 64]", "[4, 64]"]);
    names(with(&cut(VALUE, [0, 64])), &[VALUE, "[0, 64]"]);
    names(with(&|tensors| drop(tensors.remove(GATE))), &["gate_proj.lora_A.weight", "B", "blk.1.ffn_gate.weight"]);
    names(with(&|tensors| drop(tensors.remove(VALUE))), &["v_proj.lora_B.weight", "A", "blk.0.attn_v.weight"]);
    names(with(&|tensors| tensors.clear()), &["no tensors"]);
    names(with(&|tensors| tensors.get_mut(GATE).unwrap().1 = vec![4, 96, 1]), &[GATE, "[4, 96, 1]"]);
    names(with(&|tensors| *tensors.get_mut(GATE).unwrap() = (Dtype::I32, vec![96, 4], vec![0; 1536])), &[GATE, "I32"]);
    let renamed = |to: &str| {
        with(&|tensors| {
            let tensor = tensors.remove(GATE).unwrap();
            tensors.insert(to.to_string(), tensor);
        })
    };
    for name in
        ["base_model.model.lm_head.lora_embedding_B", "base_model.model.model.layers.1.mlp.gate_proj.lora_B.bias", "x"]
    {
        names(renamed(name), &[name, "ffn_down"]);
    }
    names(
        renamed(&GATE.replace("model.model.model", "model.model.language_model").replace("gate", "up")),
        &["second", "ffn_up"],
    );
}

#[test]
fn adapters_of_other_models_name_what_does_not_fit() {
    let tiny = Tiny::qwen3();
    let deeper = Lora::whole(&Tiny { layers: 3, ..tiny.clone() }, 4, 1);
    let narrower = Lora::whole(&Tiny { embedding: 32, ..tiny.clone() }, 4, 1);
    for ty in [GgmlType::F32, GgmlType::F16] {
        let forms = |lora: &Lora| {
            let builder = lora.builder("qwen3", ty).to_bytes().unwrap();
            [peft(&lora.config(""), safetensors(&lora.tensors(ty))), gguf(builder)]
        };
        for (form, part) in forms(&deeper).into_iter().zip(["layers.2.self_attn", "blk.2."]) {
            names(held(&tiny, form), &[part, "blk.2.attn_k.weight", "this qwen3 model does not have"]);
        }
        for form in forms(&narrower) {
            names(held(&tiny, form), &["[4, 32]", "[4, 64]"]);
        }
    }
    let foreign = Lora::whole(&tiny, 4, 1).builder("qwen2", GgmlType::F32);
    names(held(&tiny, gguf(foreign.to_bytes().unwrap())), &["qwen2", "qwen3"]);
}

#[test]
fn gguf_files_that_are_no_lora_adapters_say_by_which_key() {
    let tiny = Tiny::qwen3();
    let good = || Lora::whole(&tiny, 4, 1).builder("qwen3", GgmlType::F32);
    let with = |file: GgufBuilder<'static>| held(&tiny, gguf(file.to_bytes().unwrap()));
    assert!(with(good()).is_ok());
    names(with(tiny.file()), &["general.type", "adapter"]);
    names(with(good().set("general.type", "model")), &["general.type", "model"]);
    names(with(good().set("adapter.type", "control_vector")), &["adapter.type", "control_vector"]);
    names(with(good().remove("adapter.lora.alpha")), &["adapter.lora.alpha"]);
    names(with(good().set("adapter.lora.alpha", f32::NAN)), &["NaN"]);
    names(with(good().set("adapter.lora.alpha", "8")), &["adapter.lora.alpha"]);
    names(with(good().set("adapter.alora.invocation_tokens", vec![1u32])), &["adapter.alora.invocation_tokens"]);
    for name in [
        "per_layer_token_embd.weight.lora_a",
        "output_norm.weight.lora_b",
        "blk.0.attn_norm.weight",
        "blk.0.attn_q.bias.lora_a",
        "blk.01.attn_q.weight.lora_a",
    ] {
        names(with(good().tensor_f32(name, &[4, 4], &[0.0; 16])), &[name, "ffn_down"]);
    }
    for (name, missing) in [
        ("token_embd.weight.lora_a", "the factor B of token_embd.weight"),
        ("token_embd.weight.lora_b", "the factor A of token_embd.weight"),
        ("output.weight.lora_b", "the factor A of output.weight"),
    ] {
        names(with(good().tensor_f32(name, &[4, 4], &[0.0; 16])), &[name, missing]);
    }
    names(
        with(good().tensor("blk.5.attn_q.weight.lora_a", &[4, 4], GgmlType::I8, vec![0; 16])),
        &["blk.5.attn_q.weight.lora_a"],
    );
    names(
        with(good().tensor_f32("blk.5.attn_q.weight.lora_a", &[4, 2, 2], &[0.0; 16])),
        &["blk.5.attn_q.weight.lora_a", "[2, 2, 4]"],
    );
    let odd = Lora::whole(&tiny, 4, 1);
    let typed = odd.over.iter().fold(
        GgufBuilder::new().copy_metadata(&Gguf::from_bytes(good().to_bytes().unwrap()).unwrap()),
        |file, over| {
            let name = format!("blk.{}.{}.weight.lora_", over.layer, over.linear.0);
            let (rows, cols) = ((over.b.len() / 4) as u64, (over.a.len() / 4) as u64);
            file.tensor(format!("{name}a"), &[cols, 4], GgmlType::I8, vec![0; over.a.len()]).tensor_f32(
                format!("{name}b"),
                &[4, rows],
                &over.b,
            )
        },
    );
    names(with(typed), &["lora_a", "I8"]);
}

#[test]
fn what_is_more_than_factors_is_named_with_the_way_out() {
    let tiny = Tiny::qwen3();
    let lora = Lora::whole(&tiny, 4, 1);
    let with = |name: &str| {
        let mut tensors = lora.tensors(GgmlType::F32);
        tensors.insert(name.to_string(), (Dtype::F32, vec![64], vec![0; 256]));
        held(&tiny, peft(&lora.config(""), safetensors(&tensors)))
    };
    let layer = "base_model.model.model.layers.0.self_attn.q_proj";
    let dora = format!("{layer}.lora_magnitude_vector");
    names(with(&dora), &[&dora, "DoRA", "merge_and_unload", "convert_hf_to_gguf.py"]);
    names(with(&format!("{layer}.lora_magnitude_vector.default.weight")), &["DoRA"]);
    for name in [
        "base_model.model.lm_head.weight",
        "base_model.model.lm_head.modules_to_save.default.weight",
        &format!("{layer}.bias"),
    ] {
        names(with(name), &[name, "modules_to_save", "merge_and_unload", "convert_hf_to_gguf.py"]);
    }
    // MLX: other names, and a configuration of its own.
    let mut tensors = Tensors::new();
    for (side, shape) in [("a", [64, 4]), ("b", [4, 96])] {
        let name = format!("model.layers.0.self_attn.q_proj.lora_{side}");
        tensors.insert(name, (Dtype::F32, shape.to_vec(), vec![0; 4 * shape[0] * shape[1]]));
    }
    let mlx = r#"{"fine_tune_type": "lora", "num_layers": 4, "lora_parameters": {"rank": 4, "scale": 20.0}}"#;
    names(
        held(&tiny, peft(mlx, safetensors(&tensors))),
        &["an adapter of MLX", "mlx_lm.fuse", "convert_hf_to_gguf.py"],
    );
}

#[test]
fn folders_of_other_programs_are_named_with_the_way_out() {
    let tiny = Tiny::qwen3();
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let results =
            [folder.path().to_path_buf(), folder.path().join(name)].map(|path| held(&tiny, AdapterFile::open(path)));
        std::fs::remove_file(folder.path().join(name)).unwrap();
        results
    };
    let tensor = |name: &str| (name.to_string(), (Dtype::F32, vec![4, 4], vec![0; 64]));
    let mlx = safetensors(&[tensor("model.layers.0.mlp.up_proj.lora_a")].into_iter().collect());
    for result in with("adapters.safetensors", &mlx) {
        names(result, &[&folder.path().display().to_string(), "an adapter of MLX"]);
    }
    for result in with("adapter_model.bin", b"PK\x03\x04 and so on") {
        names(result, &[&folder.path().display().to_string(), "pickle", "save_pretrained"]);
    }
}

#[test]
fn files_that_are_cut_short_name_the_tensor_that_is_missing_bytes() {
    let tiny = Tiny::qwen3();
    let lora = Lora::whole(&tiny, 4, 1);
    let whole = safetensors(&lora.tensors(GgmlType::F32));
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    names(held(&tiny, peft(&lora.config(""), whole[..whole.len() - 1].to_vec())), &["lora_", "cut short"]);
    names(held(&tiny, peft(&lora.config(""), whole[..header].to_vec())), &["lora_", "cut short"]);
    for end in [0, 7, 8, header - 1] {
        names(held(&tiny, peft(&lora.config(""), whole[..end].to_vec())), &["safetensors"]);
    }
    let bytes = lora.builder("qwen3", GgmlType::F32).to_bytes().unwrap();
    names(held(&tiny, gguf(bytes[..bytes.len() - 64].to_vec())), &["lora_", "cut short"]);
}

#[test]
fn seeded_mutations_never_panic() {
    let tiny = Tiny { layers: 1, ..Tiny::qwen3() };
    let lora = Lora::whole(&tiny, 4, 1);
    let (config, model) =
        (lora.config(r#", "rank_pattern": {"v_proj": 4}, "use_rslora": false"#), open(&tiny.file()).unwrap());
    let tensors = safetensors(&lora.tensors(GgmlType::F16));
    let file = lora.builder("qwen3", GgmlType::F16).to_bytes().unwrap();
    let mut g = Gen::new(99);
    let (mut accepted, rounds) = ([0; 3], common::rounds(3000) as usize);
    for round in 0..rounds {
        // Damage goes to the start of the file, where the structure is.
        let mut hurt = |bytes: &[u8], most: usize| {
            let mut bytes = bytes.to_vec();
            for _ in 0..1 + g.bits() % 4 {
                let at = (g.bits() as usize) % bytes.len().min(most);
                match g.bits() % 4 {
                    0 => bytes[at] ^= 1 << (g.bits() % 8),
                    1 => bytes[at] = g.bits() as u8,
                    2 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, bytes[at]),
                }
            }
            bytes
        };
        let files = match round % 3 {
            0 => peft(&config, hurt(&tensors, 2048)),
            1 => peft(&String::from_utf8_lossy(&hurt(config.as_bytes(), 4096)), tensors.clone()),
            _ => gguf(hurt(&file, 4096)),
        };
        let mut checked = model.check(&Executor::Cpu).unwrap();
        accepted[round % 3] += usize::from(files.is_ok_and(|file| checked.adapt(&file, 1.0).is_ok()));
    }
    assert!(
        accepted.iter().all(|&n| n > 0 && n < rounds * 3 / 10),
        "some damage shows and some does not: {accepted:?}"
    );
}

#[test]
fn an_adapter_serves_the_model_it_was_loaded_for_and_finite_scales() {
    let tiny = Tiny::qwen3();
    let file = Lora::whole(&tiny, 4, 1).peft(GgmlType::F32, "");
    let (one, two) = (tiny.on(&Executor::Cpu), tiny.on(&Executor::Cpu));
    let adapter = one.adapter(&file).unwrap();
    let applied = |scale| vec![Applied { adapter: Arc::clone(&adapter), scale }];
    let error = two.session(exact(16)).unwrap().set_adapters(applied(1.0)).unwrap_err();
    assert!(matches!(error, Error::Adapter(AdapterError::OtherModel)), "{error}");
    let mut session = one.session(exact(16)).unwrap();
    session.feed(&[1, 2, 3]).unwrap();
    session.prefill(None).unwrap();
    for scale in [f32::NAN, f32::INFINITY, f32::MAX] {
        assert!(matches!(
            session.set_adapters(applied(scale)).unwrap_err(),
            Error::Adapter(AdapterError::Scale { .. })
        ));
    }
    assert!(session.adapters().is_empty() && session.evaluated() == 3, "nothing changed");
}
