//! Models from an Ollama store that the test builds in a folder.

use crate::tiny::{self, Model};
use crate::{Run, lora, weft};
use gguf::GgufBuilder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// An Ollama store in a temporary folder.
pub struct Store {
    folder: tempfile::TempDir,
}

impl Store {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    fn blob(&self, content: &[u8]) -> PathBuf {
        self.root().join(format!("blobs/sha256-{}", hex(content)))
    }

    fn layer(&self, kind: &str, content: &[u8]) -> Value {
        std::fs::create_dir_all(self.root().join("blobs")).unwrap();
        std::fs::write(self.blob(content), content).unwrap();
        let digest = format!("sha256:{}", hex(content));
        json!({ "mediaType": format!("application/vnd.ollama.image.{kind}"), "digest": digest, "size": content.len() })
    }

    /// Adds a model with these other layers; returns the path of the blob of its weights.
    pub fn add(&self, name: &str, file: &GgufBuilder<'_>, others: &[(&str, &str)]) -> PathBuf {
        let others: Vec<(&str, &[u8])> = others.iter().map(|(kind, content)| (*kind, content.as_bytes())).collect();
        self.add_bytes(name, file, &others)
    }

    /// The same with layers of bytes.
    fn add_bytes(&self, name: &str, file: &GgufBuilder<'_>, others: &[(&str, &[u8])]) -> PathBuf {
        self.add_file(name, &file.to_bytes().unwrap(), others)
    }

    /// The same for a file that exists.
    fn add_file(&self, name: &str, bytes: &[u8], others: &[(&str, &[u8])]) -> PathBuf {
        let mut layers = vec![self.layer("model", bytes)];
        layers.extend(others.iter().map(|(kind, content)| self.layer(kind, content)));
        let manifest = self.root().join("manifests/registry.ollama.ai/library").join(name);
        std::fs::create_dir_all(manifest.parent().unwrap()).unwrap();
        std::fs::write(manifest, json!({ "schemaVersion": 2, "layers": layers }).to_string()).unwrap();
        self.blob(bytes)
    }

    /// Runs to the end, with no other store configured.
    pub fn run(&self, words: &[&str]) -> Run {
        let mut command = weft(words);
        command
            .env("OLLAMA_MODELS", self.root())
            .env("HOME", self.root())
            .env_remove("WEFT_MODELS")
            .current_dir(self.root());
        command.output().expect("the binary starts").into()
    }
}

fn hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

const RUN: [&str; 9] = ["-p", "ab", "--device", "cpu", "-n", "4", "--temp", "0", "--json"];

#[test]
fn every_command_takes_a_name() {
    let store = Store::new();
    store.add("tiny/7b", &tiny::builder(0.5), &[]);
    let file = Model::new(&tiny::builder(0.5));
    let of = |model: &str| store.run(&[&["run", model], &RUN[..]].concat()).json();
    let named = of("tiny:7b");
    assert_eq!((named["text"].as_str(), named["model"].as_str()), (of(file.path())["text"].as_str(), Some("tiny:7b")));
    assert!(store.run(&["inspect", "tiny:7b"]).good().starts_with("tiny:7b: GGUF"));
    assert!(store.run(&["tokenize", "ollama://tiny:7b", "ab"]).good().contains("\"ab\""));
    let out = file.beside("out.npy");
    store.run(&["logits", "tiny:7b", "--tokens", "1,2", "-o", &out, "--device", "cpu", "--verify"]).good();
}

#[test]
fn an_adapter_of_the_manifest_is_applied_before_those_of_the_command_line() {
    let (store, model) = (Store::new(), Model::new(&tiny::builder(0.5)));
    store.add_bytes("adapted/latest", &tiny::builder(0.5), &[("adapter", &lora::builder(32).to_bytes().unwrap())]);
    store.add_bytes("foreign/latest", &tiny::builder(0.5), &[("adapter", &lora::builder(48).to_bytes().unwrap())]);
    let own = lora::gguf(&model, "a.gguf", 32);
    let report = |words: &[&str]| store.run(&[&["run"], words, &RUN[..]].concat()).json();
    let (pulled, given) = (report(&["adapted"]), report(&[model.path(), "--lora", &own]));
    assert_eq!(
        (pulled["tokens"].clone(), pulled["log_probs"].clone()),
        (given["tokens"].clone(), given["log_probs"].clone())
    );
    let both = report(&["adapted", "--lora", &format!("{own}:0.5")]);
    let scales: Vec<f64> =
        both["adapters"].as_array().unwrap().iter().map(|adapter| adapter["scale"].as_f64().unwrap()).collect();
    assert_eq!(scales, [1.0, 0.5]);
    assert!(
        store
            .run(&[&["run", "foreign"], &RUN[..]].concat())
            .failed(1)
            .contains("blk.0.attn_q.weight.lora_a is [2, 48]")
    );
}

#[test]
fn a_file_wins_over_a_name_and_a_folder_does_not() {
    let store = Store::new();
    store.add("both/latest", &tiny::builder(0.5).set("general.name", "of the store"), &[]);
    let name = |store: &Store| store.run(&["inspect", "both", "--json"]).json()["metadata"]["general.name"].clone();
    std::fs::create_dir(store.root().join("both")).unwrap();
    assert_eq!(name(&store), "of the store");
    std::fs::remove_dir(store.root().join("both")).unwrap();
    tiny::builder(0.5).set("general.name", "the file").save(store.root().join("both")).unwrap();
    assert_eq!(name(&store), "the file");
}

#[test]
fn what_is_not_there_lists_what_is() {
    let store = Store::new();
    let line = store.run(&["run", "tiny:7b", "-p", "x"]).failed(1);
    assert!(line.contains("Ollama has no tiny:7b here; ") && line.contains("holds no models"), "{line}");
    let line = store.run(&["run", "tiny", "-p", "x"]).failed(1);
    assert!(line.contains("tiny: no such file") && !line.contains("Ollama"), "{line}");
    store.add("tiny/7b", &tiny::builder(0.5), &[]);
    let line = store.run(&["run", "tiny:8b", "-p", "x"]).failed(1);
    assert!(line.contains("Ollama has no tiny:8b here; it has tiny:7b"), "{line}");
    let line = store.run(&["run", "tiny", "-p", "x"]).failed(1);
    assert!(
        line.contains("tiny: no such file") && line.contains("Ollama has no tiny:latest here; it has tiny:7b"),
        "{line}"
    );
    store.add("cut/latest", &tiny::builder(0.5), &[]);
    let line = store.run(&["run", "tni", "-p", "x"]).failed(1);
    assert!(line.contains("it has tiny:7b, cut:latest"), "the model's name counts, not the tag: {line}");
    let line = store.run(&["run", "gemma3", "-p", "x"]).failed(1);
    assert!(line.contains("`ollama pull gemma3` fetches it there, `weft run gemma3-4b` the same model"), "{line}");
    assert!(store.run(&["run", "../tiny:7b", "-p", "x"]).failed(1).contains("no such file"));
    assert!(
        store.run(&["run", "What is 3 + 4?", "-p", "x"]).failed(1).contains("weft run -p '..' asks the default model")
    );
}

#[test]
fn parameters_and_the_system_prompt_hold_where_nothing_else_is_said() {
    let store = Store::new();
    let params = r#"{"temperature": 0, "num_predict": 3, "num_ctx": 200, "seed": 7}"#;
    store.add("tiny/latest", &tiny::builder(0.5), &[("params", params), ("system", "Be very brief indeed.")]);
    let of = |words: &[&str]| store.run(&[&["run", "tiny", "-p", "ab", "--device", "cpu", "--json"], words].concat());
    let plain = of(&[]).json();
    assert_eq!((plain["tokens"].as_array().unwrap().len(), plain["seed"].as_u64()), (3, Some(7)));
    assert_eq!(plain["tokens"], of(&["--temp", "0"]).json()["tokens"]);
    assert!(plain["prompt_tokens"].as_u64() > of(&["--system", "x"]).json()["prompt_tokens"].as_u64());
    assert_eq!(of(&["-n", "5"]).json()["tokens"].as_array().unwrap().len(), 5);
    assert!(of(&["--system", &"x".repeat(300)]).failed(1).contains("the context is full"));
    of(&["--system", &"x".repeat(300), "--ctx", "500"]).json();
}

#[test]
fn stops_of_the_manifest_end_answers_at_control_tokens_raw_too() {
    let store = Store::new();
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/default.gguf")).unwrap();
    store.add_file(
        "world/latest",
        &file,
        &[("params", br#"{"temperature": 0, "stop": ["<|im_start|>", "<|im_end|>"]}"#)],
    );
    for words in [
        &["-p", "Where does Wren live?"][..],
        &["--raw", "-p", "<|im_start|>user\nWhere does Wren live?<|im_end|>\n<|im_start|>assistant\n"],
    ] {
        let of =
            |more: &[&str]| store.run(&[&["run", "world", "--device", "cpu", "--json"], words, more].concat()).json();
        assert_eq!((of(&[])["finish"].as_str(), of(&[])["stop"].as_str()), (Some("stop"), Some("<|im_end|>")));
        assert_eq!(of(&["--stop", " in"])["stop"], " in", "a flag replaces those of the manifest");
    }
}

#[test]
fn ollamas_parameters_come_before_those_of_the_file_and_flags_before_both() {
    let store = Store::new();
    let file = tiny::builder(0.5).set("general.sampling.temp", 5.0f32);
    store.add("tiny/latest", &file, &[("params", r#"{"temperature": 0, "num_predict": 8}"#)]);
    let tokens = |more: &[&str]| {
        store.run(&[&["run", "tiny", "-p", "ab", "--device", "cpu", "--json"], more].concat()).json()["tokens"].clone()
    };
    assert_eq!(tokens(&["--seed", "1"]), tokens(&["--seed", "2"]));
    assert_ne!(tokens(&["--seed", "1", "--temp", "9"]), tokens(&["--seed", "2", "--temp", "9"]));
    store.add("hot/latest", &tiny::builder(0.5), &[("params", r#"{"temperature": -5}"#)]);
    let hot = |more: &[&str]| store.run(&[&["run", "hot", "-p", "ab", "--device", "cpu", "-n", "1"], more].concat());
    let line = hot(&[]).failed(1);
    assert!(line.contains("temperature = -5") && line.contains("--temp"), "{line}");
    hot(&["--temp", "0"]).good();
}

#[test]
fn a_seed_of_minus_one_is_a_new_one_in_each_run() {
    let store = Store::new();
    store.add("tiny/latest", &tiny::builder(0.5), &[("params", r#"{"seed": -1}"#)]);
    store.add("exact/latest", &tiny::builder(0.5), &[("params", r#"{"seed": 9007199254740993}"#)]);
    let seed = |name: &str| store.run(&[&["run", name], &RUN[..]].concat()).json()["seed"].as_u64().unwrap();
    assert_ne!(seed("tiny"), seed("tiny"));
    assert_eq!(seed("exact"), 9_007_199_254_740_993);
}

#[test]
fn messages_of_the_manifest_are_earlier_turns() {
    let store = Store::new();
    let messages = r#"[{"role": "user", "content": "xy"}, {"role": "assistant", "content": "z"}]"#;
    store.add("tiny/latest", &tiny::builder(0.5), &[("messages", messages), ("system", "s")]);
    let prompt = |words: &[&str]| {
        store.run(&[&["run", "tiny", "--device", "cpu", "-n", "4", "--temp", "0", "--json"], words].concat()).json()
    };
    let turn = |role: &str, text: &str| format!("<|im_start|>{role}\n{text}<|im_end|>\n");
    let all = [
        turn("system", "s"),
        turn("user", "xy"),
        turn("assistant", "z"),
        turn("user", "ab"),
        "<|im_start|>assistant\n".to_string(),
    ];
    let (told, raw) = (prompt(&["-p", "ab"]), prompt(&["--raw", "-p", &all.concat()]));
    assert_eq!((&told["tokens"], &told["prompt_tokens"]), (&raw["tokens"], &raw["prompt_tokens"]));
    let own = all.concat().replace("system\ns", "system\nown");
    assert_eq!(
        prompt(&["-p", "ab", "--system", "own"])["prompt_tokens"],
        prompt(&["--raw", "-p", &own])["prompt_tokens"]
    );
    store.add("broken/latest", &tiny::builder(0.5), &[("messages", "{}")]);
    assert!(store.run(&[&["run", "broken"], &RUN[..]].concat()).failed(1).contains("its messages cannot be read"));
}

#[test]
fn one_note_lists_what_does_not_apply() {
    let store = Store::new();
    let params =
        r#"{"mirostat": 2, "mirostat_tau": 5, "typical_p": 1, "num_thread": 4, "use_mmap": true, "new_name": "x"}"#;
    let layers = [("params", params), ("projector", "eyes"), ("license", "MIT"), ("strange", "layer")];
    store.add("tiny/latest", &tiny::builder(0.5), &layers);
    let expected = "of Ollama's settings, Weft does not apply mirostat = 2, new_name = \"x\", its encoder of images and sound, its layer strange\n";
    let run = store.run(&[&["run", "tiny"], &RUN[..]].concat());
    assert!(run.code == 0 && run.err.ends_with(expected) && run.err.matches('\n').count() == 1, "{}", run.err);
    assert!(store.run(&["inspect", "tiny"]).good().contains(expected.trim_end()));
    store.add(
        "quiet/latest",
        &tiny::builder(0.5),
        &[("params", r#"{"mirostat": 0, "num_gpu": 9}"#), ("license", "MIT")],
    );
    assert_eq!(store.run(&[&["run", "quiet"], &RUN[..]].concat()).err, "");
}

#[test]
fn an_adapter_of_the_manifest_is_told_where_the_base_has_it_not() {
    let (store, model) = (Store::new(), Model::new(&tiny::builder(0.5)));
    store.add_bytes("adapted/latest", &tiny::builder(0.5), &[("adapter", &lora::builder(32).to_bytes().unwrap())]);
    let (own, out) = (lora::gguf(&model, "a.gguf", 32), model.beside("merged.gguf"));
    let merged = store.run(&["merge", "adapted", &own, "-o", &out]);
    assert!(merged.code == 0 && merged.err.contains("the adapter that Ollama applies"), "{}", merged.err);
}

#[test]
fn a_blob_that_is_cut_or_changed_says_so() {
    let store = Store::new();
    let blob = store.add("tiny/latest", &tiny::builder(0.5), &[]);
    let of = |words: &[&str]| store.run(&[&["run", "tiny"], &RUN[..], words].concat());
    of(&["--verify"]).json();
    let good = std::fs::read(&blob).unwrap();
    let mut changed = good.clone();
    let last = changed.len() - 3;
    changed[last] ^= 1;
    std::fs::write(&blob, &changed).unwrap();
    of(&[]).json();
    let line = of(&["--verify"]).failed(1);
    assert!(line.contains("tiny:latest is damaged") && line.contains("digest"), "{line}");
    assert!(store.run(&["inspect", "tiny", "--verify"]).err.contains("digest"));
    std::fs::write(&blob, &good[..1000]).unwrap();
    assert!(of(&[]).failed(1).contains("(it was cut short); pull it again"));
    std::fs::remove_file(&blob).unwrap();
    assert!(of(&[]).failed(1).contains("is missing; pull it again"));
}

#[test]
fn verify_finds_damage_in_plain_files_too() {
    let model = Model::new(&tiny::builder(f32::INFINITY));
    let line = crate::run(&["run", model.path(), "-p", "ab", "--device", "cpu", "--verify"]).failed(1);
    assert!(line.contains("infinite values"), "{line}");
}

#[test]
fn a_model_with_an_adapter_is_not_run_without_it() {
    let store = Store::new();
    store.add("tuned/latest", &tiny::builder(0.5), &[("adapter", "low rank")]);
    assert!(store.run(&["run", "tuned", "-p", "ab"]).failed(1).contains("adapter"));
    store.run(&["inspect", "tuned"]).good();
}
