//! Files of trained factors: what is written is read back with the same bits.

#[path = "../../model/tests/common/mod.rs"]
mod common;

use common::Tiny;
use gguf::{GgmlType, Gguf};
use kernels::{Device, Executor, Watch};
use model::{AdapterFile, FactorPair, Model};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use train::{
    Document, Error, Full, Lora, NO_TARGET, Parameter, PeftOptions, Rate, Trainer, TrainerOptions, Writing, save_gguf,
    save_model, save_peft,
};

fn model() -> Model {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf");
    Model::open(file).expect("the default model").on(Executor::Cpu).expect("a model")
}

fn trained(lora: Lora) -> Trainer {
    let mut trainer = Trainer::new(&model(), lora, &TrainerOptions::default()).expect("a trainer");
    trainer.step(&documents(), Watch::default()).expect("a step");
    trainer
}

fn pair(target: &str, rank: u32, scale: f32) -> FactorPair {
    let values = |len: u32, step: f32| (0..len).map(|i| (step * i as f32).sin() / 3.0).collect();
    FactorPair { target: target.to_string(), rank, scale, a: values(rank * 8, 0.7), b: values(12 * rank, 1.3) }
}

fn documents() -> [Document; 1] {
    let ids: Vec<u32> = (0..12).map(|t| 7 * t + 20).collect();
    [Document { targets: ids[1..].iter().copied().chain([NO_TARGET]).collect(), ids, ..Document::default() }]
}

/// The factors in a file, in the order of `like`.
fn read(path: &Path, like: &[FactorPair]) -> Vec<FactorPair> {
    let all = AdapterFile::open(path).expect("an adapter").factors().expect("factors");
    assert_eq!(all.len(), like.len());
    like.iter().map(|pair| all.iter().find(|found| found.target == pair.target).expect("the target").clone()).collect()
}

fn config(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(folder.join("adapter_config.json")).expect("a config")).expect("JSON")
}

#[test]
fn a_trainer_writes_both_forms_with_the_bits_of_its_factors() {
    let folder = tempfile::tempdir().expect("a folder");
    let (peft, gguf) = (folder.path().join("run/adapter"), folder.path().join("adapter.gguf"));
    for lora in [Lora::new(6), Lora::new(6).rslora(true).targets("blk.1.*,q".parse().expect("targets")).dropout(0.1)] {
        let trainer = trained(lora.clone());
        let factors = trainer.factors().expect("factors");
        assert!(factors.iter().all(|pair| pair.b.iter().any(|v| *v != 0.0)));
        trainer.save_peft(&peft).expect("written");
        assert_eq!(read(&peft, &factors), factors);
        trainer.save_gguf(&gguf).expect("written");
        let read = read(&gguf, &factors);
        if lora.rslora {
            // 12 / sqrt(6) is no f32 that divides: the factor B has the rest.
            let apart = |(a, b): (&f32, &f32), by: f32| (a * by - b).abs() <= 2e-7 * b.abs();
            let close =
                |(a, b): (&FactorPair, &FactorPair)| a.b.iter().zip(&b.b).all(|both| apart(both, a.scale / b.scale));
            assert!(read.iter().zip(&factors).all(close));
        } else {
            assert_eq!(read, factors);
        }
        let (config, modules) = (config(&peft), config(&peft)["target_modules"].clone());
        assert_eq!(
            (&config["r"], &config["lora_alpha"], &config["use_rslora"]),
            (&6.into(), &12.into(), &lora.rslora.into())
        );
        assert_eq!(config["lora_dropout"], if lora.rslora { 0.1 } else { 0.0 });
        let all = ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"];
        let some = |kind: &str| {
            if kind == "q_proj" { kind.to_string() } else { format!("model.layers.1.{}.{kind}", place(kind)) }
        };
        let mut expected: Vec<String> =
            all.iter().map(|kind| if lora.rslora { some(kind) } else { (*kind).to_string() }).collect();
        expected.sort();
        assert_eq!(modules, serde_json::json!(expected));
    }
}

fn place(kind: &str) -> &'static str {
    if ["gate_proj", "up_proj", "down_proj"].contains(&kind) { "mlp" } else { "self_attn" }
}

#[test]
fn ranks_scales_and_a_prefix_of_their_own_are_stated() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let factors = [
        pair("blk.0.attn_q.weight", 4, 2.0),
        pair("blk.0.ffn_up.weight", 2, 4.0),
        pair("blk.11.attn_q.weight", 4, 0.3),
        pair("blk.1.attn_q.weight", 3, -0.1),
    ];
    for options in
        [PeftOptions::default().prefix("model.language_model").base("you/model"), PeftOptions::default().rslora(true)]
    {
        save_peft(at, &factors, &options).expect("written");
        assert_eq!(read(at, &factors), factors);
    }
    save_peft(at, &factors, &PeftOptions::default().prefix("model.language_model").base("you/model")).expect("written");
    let config = config(at);
    assert_eq!(
        (&config["r"], &config["lora_alpha"], &config["base_model_name_or_path"]),
        (&4.into(), &8.into(), &"you/model".into())
    );
    let name = |module: &str| format!("model.language_model.layers.{module}");
    assert_eq!(config["rank_pattern"], serde_json::json!({ name("0.mlp.up_proj"): 2, name("1.self_attn.q_proj"): 3 }));
    let patterns = config["alpha_pattern"].as_object().expect("patterns");
    assert_eq!(patterns.keys().collect::<Vec<_>>(), [&name("11.self_attn.q_proj"), &name("1.self_attn.q_proj")]);
    let names: Vec<String> =
        ["0.mlp.up_proj", "0.self_attn.q_proj", "1.self_attn.q_proj", "11.self_attn.q_proj"].map(name).to_vec();
    assert_eq!(config["target_modules"], serde_json::json!(names), "the number of layers is unknown");

    // One alpha serves the first two; the others' factors take the quotient.
    let file = at.join("a.gguf");
    save_gguf(&file, "qwen3", &factors).expect("written");
    let found = read(&file, &factors);
    assert_eq!(found[..2], factors[..2]);
    for (found, pair) in found[2..].iter().zip(&factors[2..]) {
        assert_eq!(found.a, pair.a);
        let same = |(a, b): (&f32, &f32)| (a * found.scale - b * pair.scale).abs() <= 2e-7 * (b * pair.scale).abs();
        assert!(found.b.iter().zip(&pair.b).all(same));
    }
    // A scale of nothing stays nothing.
    save_gguf(&file, "qwen3", &[pair("blk.0.attn_q.weight", 4, 0.0)]).expect("written");
    assert!(read(&file, &factors[..1])[0].b.iter().all(|v| *v == 0.0));
    assert_eq!(Gguf::open(&file).expect("a file").get::<f32>("adapter.lora.alpha").expect("alpha"), 4.0);
}

#[test]
fn a_folder_never_has_factors_beside_the_configuration_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let (config, tensors) = (at.join("adapter_config.json"), at.join("adapter_model.safetensors"));
    let save = |scale: f32| save_peft(at, &[pair("blk.0.attn_q.weight", 4, scale)], &PeftOptions::default());
    save(2.0).expect("written");
    // The configuration of the same run is not touched.
    let written = fs::metadata(&config).expect("a file").modified().expect("a time");
    save(2.0).expect("written");
    assert_eq!(fs::metadata(&config).expect("a file").modified().expect("a time"), written);
    // The configuration cannot be replaced: the new factors stand alone, and are refused.
    fs::remove_file(&config).expect("removed");
    fs::create_dir(&config).expect("a folder in its place");
    assert!(matches!(save(1.0), Err(Error::File(_))));
    assert!(AdapterFile::open(at).is_err());
    fs::remove_dir(&config).expect("removed");
    fs::remove_file(&tensors).expect("removed");
    // The factors cannot be replaced: the old configuration stays with the old factors.
    save(2.0).expect("written");
    fs::rename(&tensors, at.join("kept")).expect("moved");
    fs::create_dir(&tensors).expect("a folder in its place");
    assert!(save(1.0).is_err());
}

#[test]
fn what_has_no_form_as_an_adapter_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let trainer = Trainer::new(&model(), Full::default(), &TrainerOptions::default()).expect("a trainer");
    for result in [trainer.save_peft(folder.path()), trainer.save_gguf(folder.path().join("a.gguf"))] {
        assert!(result.expect_err("no factors").to_string().contains("the weights of the model are trained"));
    }
    assert!(
        save_peft(folder.path(), &[], &PeftOptions::default()).expect_err("none").to_string().contains("no factors")
    );
    assert!(
        save_gguf(folder.path().join("a.gguf"), "qwen3", &[]).expect_err("none").to_string().contains("no factors")
    );
    let strange = save_peft(folder.path(), &[pair("blk.0.ffn_gate_inp.weight", 4, 1.0)], &PeftOptions::default());
    assert!(
        strange.expect_err("no name").to_string().contains("PEFT has no name for factors of blk.0.ffn_gate_inp.weight")
    );
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let under = save_peft(file.join("adapter"), &[pair("blk.0.attn_q.weight", 4, 1.0)], &PeftOptions::default());
    assert!(under.expect_err("a file").to_string().contains("adapter: cannot write"));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left behind");
}

#[test]
fn trained_weights_become_a_model_that_computes_what_was_trained() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.gguf");
    let base = model();
    for (full, ty) in [(Full::default(), GgmlType::F16), (Full::default().fresh(3), GgmlType::F32)] {
        let mut trainer = Trainer::new(&base, full, &TrainerOptions::default()).expect("a trainer");
        let documents = documents();
        trainer.step(&documents, Watch::default()).expect("a step");
        let loss = trainer.evaluate(&documents, Watch::default()).expect("a loss").loss;
        trainer.save_model(&path, ty).expect("written");
        let read = Model::open(&path).expect("the model").on(Executor::Cpu).expect("a model");
        let mut again = Trainer::new(&read, Lora::new(4), &TrainerOptions::default()).expect("a trainer");
        let found = again.evaluate(&documents, Watch::default()).expect("a loss").loss;
        let bound = if ty == GgmlType::F32 { 1e-6 } else { 2e-3 };
        assert!((found - loss).abs() <= bound * loss, "{ty}: {found} {loss}");
        let (file, old) = (read.file(), base.file());
        assert_eq!(file.tensors().len(), old.tensors().len());
        for (new, old) in file.tensors().iter().zip(old.tensors()) {
            let expected = if old.n_dims == 1 { GgmlType::F32 } else { ty };
            assert_eq!((new.name(), new.shape(), new.ty().expect("a type")), (old.name(), old.shape(), expected));
        }
        assert_eq!(file.get::<u32>("general.file_type").expect("a number"), u32::from(ty == GgmlType::F16));
        let others = |file: &Gguf| {
            file.metadata()
                .filter(|(key, _)| *key != "general.file_type")
                .map(|(key, value)| format!("{key} {value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(others(file), others(old));
    }
    let trainer = Trainer::new(&base, Lora::new(4), &TrainerOptions::default()).expect("a trainer");
    assert!(trainer.save_model(&path, GgmlType::F16).expect_err("factors").to_string().contains("factors are trained"));
    let mut parameter = Parameter { name: "blk.99.attn_q.weight".to_string(), rows: 1, cols: 1, values: vec![0.0] };
    let error = save_model(&path, base.file(), std::slice::from_ref(&parameter), GgmlType::F16).expect_err("no tensor");
    assert!(matches!(error, Error::NoTarget { .. }), "{error}");
    parameter.name = "token_embd.weight".to_string();
    let error = save_model(&path, base.file(), &[parameter], GgmlType::IQ3_S).expect_err("no quantizer");
    assert!(error.to_string().starts_with("token_embd.weight is IQ3_S, which can be read but not written"), "{error}");
}

#[test]
fn a_cancelled_merge_leaves_the_old_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (adapter, out) = (folder.path().join("a.gguf"), folder.path().join("out.gguf"));
    trained(Lora::new(4)).save_gguf(&adapter).expect("written");
    fs::write(&out, "old").expect("written");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf");
    let file = model::ModelFile::open(file).expect("the default model");
    let adapters = [(AdapterFile::open(&adapter).expect("an adapter"), 1.0)];
    let (cancel, last) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |progress: kernels::Progress| {
        last.fetch_max(progress.done, Ordering::Relaxed);
        cancel.store(progress.done > progress.total / 2, Ordering::Relaxed);
    };
    let merge = |watch: Writing<'_>| train::merge(&file, &adapters, Some(GgmlType::Q8_0), &out, watch);
    let error = merge(Writing { cancel: Some(&cancel), progress: Some(&progress) }).expect_err("cancelled");
    assert!(matches!(error, Error::Kernels(kernels::Error::Cancelled)), "{error}");
    assert_eq!(fs::read(&out).expect("a file"), b"old");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    let whole: u64 = file.file().tensors().iter().map(|tensor| tensor.bytes).sum();
    merge(Writing { cancel: None, progress: Some(&progress) }).expect("merged");
    assert_eq!(last.into_inner(), whole);
}

/// The default model has tied embeddings: one tensor is looked up and gives logits.
#[test]
fn the_two_ends_of_a_model_train_and_leave_through_every_door() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for executor in [Executor::Cpu, Executor::Gpu(Device::auto().expect("an adapter, if only the software one"))] {
        let (kind, base) = (executor.kind(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf"));
        let base = Model::open(base).expect("the default model").on(executor.clone()).expect("a model");
        let lora = Lora::new(6).targets("embed,head,v".parse().expect("targets")).dropout(0.1);
        let mut trainer =
            Trainer::new(&base, lora, &TrainerOptions::default().rate(Rate::constant(1e-2))).expect("a trainer");
        let untrained = trainer.evaluate(&documents(), Watch::default()).expect("a loss").loss;
        (0..3).for_each(|_| drop(trainer.step(&documents(), Watch::default()).expect("a step")));
        let loss = trainer.evaluate(&documents(), Watch::default()).expect("a loss").loss;
        assert!(loss < untrained - 0.01, "{kind}: {loss} after {untrained}");
        let factors = trainer.factors().expect("factors");
        assert!(factors.iter().all(|pair| pair.b.iter().any(|v| *v != 0.0)), "{kind}");
        trainer.save_peft(at("peft")).expect("written");
        trainer.save_gguf(at("a.gguf")).expect("written");
        for path in [at("peft"), at("a.gguf")] {
            let read = read(&path, &factors);
            assert_eq!(read, factors);
            let on = Trainer::new(&base, Lora::new(1).init(read), &TrainerOptions::default());
            let again = on.expect("a trainer").evaluate(&documents(), Watch::default()).expect("a loss").loss;
            assert_eq!(again.to_bits(), loss.to_bits(), "{kind}");
        }
        // The merged file has two tensors in the place of one.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/default.gguf");
        let file = model::ModelFile::open(file).expect("the default model");
        let adapters = [(AdapterFile::open(at("peft")).expect("an adapter"), 1.0)];
        train::merge(&file, &adapters, Some(GgmlType::F32), at("merged.gguf"), Writing::default()).expect("merged");
        let merged = Model::open(at("merged.gguf")).expect("a model").on(executor).expect("a model");
        assert!(merged.file().find_tensor("output.weight").is_some());
        let plain = Trainer::new(&merged, Lora::new(1), &TrainerOptions::default());
        let found = plain.expect("a trainer").evaluate(&documents(), Watch::default()).expect("a loss").loss;
        assert!((found - loss).abs() <= 1e-5 * loss, "{kind}: merged {found}, trained {loss}");
    }
    let names = config(&at("peft"))["target_modules"].clone();
    assert_eq!(names, serde_json::json!(["embed_tokens", "lm_head", "v_proj"]));
    let bytes = fs::read(at("peft/adapter_model.safetensors")).expect("a file");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("tensors");
    let vocabulary = model().summary().vocabulary as usize;
    let shape = |name: &str| tensors.tensor(&format!("base_model.model.{name}")).expect("a tensor").shape().to_vec();
    assert_eq!(shape("model.embed_tokens.lora_embedding_A"), [6, vocabulary]);
    assert_eq!(shape("lm_head.lora_B.weight"), [vocabulary, 6]);
    let file = Gguf::open(at("a.gguf")).expect("a file");
    assert_eq!(file.tensor("token_embd.weight.lora_a").expect("a tensor").shape(), [6, vocabulary as u64]);
    assert_eq!(file.tensor("output.weight.lora_b").expect("a tensor").shape(), [6, vocabulary as u64]);
}

/// Gemma 3n and Gemma 4 E have an embedding per layer, with linear layers of its own.
#[test]
fn layers_of_the_embedding_per_layer_train_and_leave_through_every_door() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    Tiny { types: &[GgmlType::F32], ..Tiny::gemma4() }.file().save(at("gemma4.gguf")).expect("room");
    let gemma3n = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/gemma3n/gemma3n-F16.gguf");
    for (base, names) in [
        (at("gemma4.gguf"), &["per_layer_model_proj", "blk.0.inp_gate", "blk.5.proj"][..]),
        (
            gemma3n,
            &["per_layer_model_proj", "blk.0.inp_gate", "blk.5.proj", "blk.5.laurel_l", "blk.0.altup_predict_coef"],
        ),
    ] {
        let file = model::ModelFile::open(&base).expect("a model");
        let model = Model::open(&base).expect("a model").on(Executor::Cpu).expect("a model");
        let options = TrainerOptions::default().rate(Rate::constant(1e-2));
        let mut trainer = Trainer::new(&model, Lora::new(4), &options).expect("a trainer");
        (0..2).for_each(|_| drop(trainer.step(&documents(), Watch::default()).expect("a step")));
        let loss = trainer.evaluate(&documents(), Watch::default()).expect("a loss").loss;
        let factors = trainer.factors().expect("factors");
        for name in names {
            let pair = factors.iter().find(|pair| pair.target == format!("{name}.weight"));
            assert!(pair.unwrap_or_else(|| panic!("all has no {name}")).b.iter().any(|v| *v != 0.0), "{name}");
        }
        trainer.save_peft(at("peft")).expect("written");
        trainer.save_gguf(at("a.gguf")).expect("written");
        for path in [at("peft"), at("a.gguf")] {
            let read = read(&path, &factors);
            assert_eq!(read, factors);
            let on = Trainer::new(&model, Lora::new(1).init(read), &TrainerOptions::default());
            let again = on.expect("a trainer").evaluate(&documents(), Watch::default()).expect("a loss").loss;
            assert_eq!(again.to_bits(), loss.to_bits());
        }
        let modules = config(&at("peft"))["target_modules"].clone();
        for module in ["per_layer_input_gate", "per_layer_projection", "per_layer_model_projection"] {
            assert!(modules.as_array().expect("names").contains(&module.into()), "{modules}");
        }
        // Factors of keys in a layer that has none change no merged file.
        let stray = pair("blk.5.attn_k.weight", 4, 1.0);
        save_gguf(at("more.gguf"), model.summary().architecture, &[&factors[..], &[stray]].concat()).expect("written");
        let merge = |adapter: &str, to: &str| {
            let adapters = [(AdapterFile::open(at(adapter)).expect("an adapter"), 1.0)];
            train::merge(&file, &adapters, Some(GgmlType::F32), at(to), Writing::default()).expect("merged")
        };
        let (plain, more) = (merge("a.gguf", "merged.gguf"), merge("more.gguf", "again.gguf"));
        assert_eq!((plain.tensors, &plain.notes, more.tensors), (factors.len(), &vec![None], factors.len()));
        let said = more.notes[0].as_ref().expect("a note").to_string();
        assert!(
            said.contains(
                "factors of keys and values (blk.5.attn_k.weight): the layer takes them from an earlier layer"
            ),
            "{said}"
        );
        assert_eq!(fs::read(at("merged.gguf")).expect("a file"), fs::read(at("again.gguf")).expect("a file"));
        let merged = Model::open(at("merged.gguf")).expect("a model").on(Executor::Cpu).expect("a model");
        let found = Trainer::new(&merged, Lora::new(1), &TrainerOptions::default()).expect("a trainer");
        let found = { found }.evaluate(&documents(), Watch::default()).expect("a loss").loss;
        assert!((found - loss).abs() <= 1e-4 * loss, "{}: merged {found}, trained {loss}", base.display());
    }
}
