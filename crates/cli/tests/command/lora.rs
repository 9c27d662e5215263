//! `--lora`: adapters over the tiny model.

use crate::run;
use crate::tiny::{self, Model};
use gguf::GgufBuilder;
use std::path::Path;

const RANK: usize = 2;

/// The two factors for `attn_q` of the first layer: [2, 32] and [32, 2].
fn factors() -> [Vec<f32>; 2] {
    [3, 5].map(|step| (0..32 * RANK).map(|i| ((i * step) % 7) as f32 / 7.0 - 0.4).collect())
}

/// An adapter in llama.cpp's format, for `cols` columns.
pub fn builder(cols: u64) -> GgufBuilder<'static> {
    let [a, b] = factors();
    let a = a.iter().copied().cycle().take(cols as usize * RANK).collect::<Vec<f32>>();
    GgufBuilder::new()
        .set("general.type", "adapter")
        .set("general.architecture", "qwen3")
        .set("adapter.type", "lora")
        .set("adapter.lora.alpha", 4.0f32)
        .tensor_f32("blk.0.attn_q.weight.lora_a", &[cols, RANK as u64], &a)
        .tensor_f32("blk.0.attn_q.weight.lora_b", &[RANK as u64, 32], &b)
}

/// Writes the same adapter beside a model.
pub fn gguf(model: &Model, name: &str, cols: u64) -> String {
    let path = model.beside(name);
    builder(cols).save(&path).expect("a valid file");
    path
}

/// The same factors as safetensors under these names.
fn safetensors(name: impl Fn(&str) -> String) -> Vec<u8> {
    let [a, b] = factors();
    let header = serde_json::json!({
        "__metadata__": { "alpha": "4" },
        name("A"): { "dtype": "F32", "shape": [RANK, 32], "data_offsets": [0, 256] },
        name("B"): { "dtype": "F32", "shape": [32, RANK], "data_offsets": [256, 512] },
    })
    .to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(a.iter().chain(&b).flat_map(|v| v.to_le_bytes()));
    bytes
}

/// Writes the same adapter in PEFT's format, in a folder beside a model.
fn peft(model: &Model) -> String {
    let folder = model.beside("peft");
    write_peft(Path::new(&folder));
    folder
}

/// Writes the same adapter in PEFT's format, in a new folder.
pub fn write_peft(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let bytes = safetensors(|side| format!("base_model.model.model.layers.0.self_attn.q_proj.lora_{side}.weight"));
    std::fs::write(folder.join("adapter_model.safetensors"), bytes).unwrap();
    std::fs::write(
        folder.join("adapter_config.json"),
        r#"{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none"}"#,
    )
    .unwrap();
}

#[test]
fn all_forms_change_the_logits_alike_and_a_scale_of_0_does_not() {
    let model = Model::new(&tiny::builder(0.5));
    let (gguf, peft, seed) = (gguf(&model, "a.gguf", 32), peft(&model), model.beside("seed.safetensors"));
    std::fs::write(&seed, safetensors(|side| format!("lora.blk.0.q.{side}"))).unwrap();
    let out = model.beside("out.npy");
    let with = |adapters: &[&str]| {
        let words = ["logits", model.path(), "--device", "cpu", "--tokens", "1,2,3", "-o", &out];
        let flags = adapters.iter().flat_map(|adapter| ["--lora", adapter]);
        run(&words.into_iter().chain(flags).collect::<Vec<_>>()).good();
        std::fs::read(&out).unwrap()
    };
    let (plain, adapted) = (with(&[]), with(&[&gguf]));
    assert_ne!(plain, adapted);
    assert_eq!(with(&[&peft]), adapted);
    assert_eq!(with(&[&seed]), adapted);
    assert_eq!(with(&[&format!("{peft}/adapter_model.safetensors")]), adapted);
    assert_eq!(with(&[&format!("{gguf}:0")]), plain);
    assert_ne!(with(&[&format!("{gguf}:0.5")]), adapted);
    assert_ne!(with(&[&gguf, &peft]), adapted, "they add up");
}

#[test]
fn answers_perplexity_and_benches_tell_their_adapters() {
    let model = Model::new(&tiny::builder(0.5));
    let adapter = format!("{}:0.5", gguf(&model, "a.gguf", 32));
    let text = model.beside("text.txt");
    std::fs::write(&text, "abcdefgh".repeat(8)).unwrap();
    let device = ["--device", "cpu", "--lora", &adapter, "--json"];
    let answer = run(&[&["run", model.path(), "-p", "ab", "-n", "3"], &device[..]].concat()).json();
    let perplexity = run(&[&["perplexity", model.path(), &text, "--ctx", "16"], &device[..]].concat()).json();
    let plain = run(&["perplexity", model.path(), &text, "--ctx", "16", "--device", "cpu", "--json"]).json();
    let bench =
        run(&[&["bench", model.path(), "-p", "4", "-n", "2", "-b", "1,2", "-r", "1"], &device[..]].concat()).json();
    for report in [&answer, &perplexity, &bench[0], &bench[2]] {
        assert!(
            report["adapters"][0]["file"].as_str().unwrap().ends_with("a.gguf")
                && report["adapters"][0]["scale"] == 0.5,
            "{report}"
        );
    }
    assert_ne!(plain["perplexity"], perplexity["perplexity"]);
    assert_eq!(plain["adapters"], serde_json::json!([]));
}

#[test]
fn what_is_wrong_with_an_adapter_is_one_line_that_names_it() {
    let model = Model::new(&tiny::builder(0.5));
    let with = |adapter: &str| run(&["run", model.path(), "--device", "cpu", "-p", "ab", "--lora", adapter]);
    let wide = with(&gguf(&model, "wide.gguf", 48)).failed(1);
    assert!(
        wide.contains("wide.gguf")
            && wide.contains("blk.0.attn_q.weight.lora_a is [2, 48]")
            && wide.contains("[2, 32]"),
        "{wide}"
    );
    assert!(with(model.path()).failed(1).contains("general.type"));
    assert!(with(&model.beside("none.gguf")).failed(1).contains("none.gguf: no such adapter: there is no file"));
    let line = with("nowhere:abc").failed(1);
    assert!(line.contains("nowhere:abc: no such adapter: there is no file or folder of this name"), "{line}");
    let line = with(&format!("{}:abc", model.beside("wide.gguf"))).failed(1);
    assert!(line.contains("wide.gguf exists, and \"abc\" is not a scale: write a number, as in "), "{line}");
    assert!(with(model.folder.path().to_str().unwrap()).failed(1).contains("adapter_model.safetensors"));
    for text in ["", "neither the one nor the other"] {
        let notes = model.beside("notes.txt");
        std::fs::write(&notes, text).unwrap();
        let line = with(&notes).failed(1);
        assert!(line.contains("notes.txt: not an adapter: neither a GGUF file nor a safetensors file"), "{line}");
    }
    let bare = model.beside("bare.safetensors");
    std::fs::write(&bare, [2, 0, 0, 0, 0, 0, 0, 0, b'{', b'}']).unwrap();
    assert!(with(&bare).failed(1).contains("adapter_config.json"));
    std::fs::write(model.beside("adapter_config.json"), r#"{"peft_type": "LORA", "use_dora": true}"#).unwrap();
    assert!(with(&bare).failed(1).contains("use_dora = true is not supported"));
    for bad in ["a.gguf:nan", ":0.5", ""] {
        let run = with(bad);
        assert!(run.code == 2 && run.err.contains("--lora"), "{bad}: {}", run.err);
    }
}

#[test]
fn factors_that_are_left_out_are_told_by_every_command_that_takes_an_adapter() {
    let model = Model::new(&tiny::builder(0.5));
    let adapter = model.beside("seeing.gguf");
    let tower = "v.blk.0.attn_q.weight.lora_a";
    builder(32).tensor_f32(tower, &[4, 4], &[0.0; 16]).save(&adapter).unwrap();
    let said = "the adapter applies without some of its tensors: factors of towers and projectors (v.blk.0.attn_q.weight): only the text model runs";
    let note = format!("weft: {adapter}: {said}\n");
    let (out, data) = (model.beside("out"), model.beside("data.jsonl"));
    std::fs::write(&data, "{\"ids\": [5, 6, 7, 8]}\n").unwrap();
    let (path, device) = (model.path(), ["--device", "cpu"]);
    for words in [
        &["run", path, "-p", "ab", "-n", "2", "--lora", &adapter, "--device", "cpu"][..],
        &["merge", path, &adapter, "-o", &out],
        &[&["gradients", path, "--data", &data, "-o", &out, "--init", &adapter], &device[..]].concat(),
        &[&["train", path, "--data", &data, "--dry-run", "--init", &adapter], &device[..]].concat(),
    ] {
        let run = run(words);
        assert!(run.code == 0 && run.err.matches(&note).count() == 1, "{words:?}: {}", run.err);
    }
    let text = run(&["inspect", path, "--lora", &adapter]).good();
    assert!(text.contains(&format!("note: {adapter}: {said}")), "{text}");
    let json = run(&["inspect", path, "--lora", &adapter, "--json"]).json();
    assert_eq!(json["notes"], serde_json::json!([format!("{adapter}: {said}")]));
    let plain = run(&["inspect", path, "--json"]).json();
    let bytes = |json: &serde_json::Value| json["memory"]["weights_bytes"].as_u64().unwrap();
    assert!(bytes(&json) > bytes(&plain), "the factors take memory");
}
