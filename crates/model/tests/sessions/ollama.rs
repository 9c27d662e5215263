//! A store in Ollama's layout, built in a folder, intact and damaged.

use crate::common;
use gguf::{Directory, FileDirectory, Item, MemoryDirectory};
use model::Sampling;
use model::ollama::{Name, OllamaError, Stores, fuzz};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Store {
    folder: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn stores(&self) -> Stores {
        Stores::new([self.root().join("nothing"), self.root().to_owned()])
    }

    fn blob_path(&self, content: &[u8]) -> PathBuf {
        self.root().join("blobs").join(format!("sha256-{}", hex(content)))
    }

    /// Writes a blob and describes it as a layer.
    fn layer(&self, kind: &str, content: &[u8]) -> Value {
        std::fs::create_dir_all(self.root().join("blobs")).unwrap();
        std::fs::write(self.blob_path(content), content).unwrap();
        json!({ "mediaType": format!("application/vnd.ollama.image.{kind}"), "digest": format!("sha256:{}", hex(content)), "size": content.len() })
    }

    fn manifest(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join("manifests").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn model(&self, path: &str, layers: Vec<Value>) {
        self.manifest(path, manifest(&json!(layers)));
    }

    fn find(&self, name: &str) -> Result<model::ollama::Entry, OllamaError> {
        self.stores().find(&name.parse()?)
    }

    #[track_caller]
    fn refused(&self, name: &str) -> String {
        self.find(name).unwrap_err().to_string()
    }
}

fn hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn manifest(layers: &Value) -> String {
    let config = json!({ "mediaType": "application/vnd.docker.container.image.v1+json", "digest": format!("sha256:{}", hex(b"{}")), "size": 2 });
    json!({ "schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "config": config, "layers": layers })
        .to_string()
}

#[test]
fn a_model_is_found_with_what_its_modelfile_says() {
    let store = Store::new();
    let params =
        json!({ "temperature": 1, "top_k": 64, "stop": ["<end>", "x"], "num_ctx": 4096, "use_mmap": true }).to_string();
    let layers = [
        ("model", &b"gguf bytes"[..]),
        ("template", b"{{ .Prompt }}"),
        ("system", b"Be brief."),
        ("params", params.as_bytes()),
        ("license", b"MIT"),
        ("projector", b"eyes"),
    ];
    store.model(
        "registry.ollama.ai/library/gemma4/e2b",
        layers.iter().map(|(kind, content)| store.layer(kind, content)).collect(),
    );
    let entry = store.find("gemma4:e2b").unwrap();
    assert_eq!(entry.name.to_string(), "gemma4:e2b");
    assert_eq!((std::fs::read(&entry.model.path).unwrap().as_slice(), entry.model.bytes), (&b"gguf bytes"[..], 10));
    assert_eq!((entry.template.as_deref(), entry.system.as_deref()), (Some("{{ .Prompt }}"), Some("Be brief.")));
    assert_eq!(
        (entry.params.number("temperature"), entry.params.number("num_ctx"), entry.params.number("seed")),
        (Some(1.0), Some(4096.0), None)
    );
    assert_eq!(entry.params.stop, ["<end>", "x"]);
    assert_eq!((entry.projectors.len(), entry.adapters.len()), (1, 0));
    entry.verify(&|progress| assert!(progress.total > 10)).unwrap();
    assert_eq!(store.find("Gemma4:E2B").unwrap().name.to_string(), "gemma4:e2b", "case does not matter");
}

#[test]
fn a_template_that_says_nothing_gives_way_where_ollama_renders_in_code() {
    let store = Store::new();
    let found = |template: &str, config: &str| {
        let layers = json!([store.layer("model", b"gguf bytes"), store.layer("template", template.as_bytes())]);
        store.manifest(
            "registry.ollama.ai/library/a/latest",
            json!({ "schemaVersion": 2, "layers": layers, "config": store.layer("config", config.as_bytes()) })
                .to_string(),
        );
        store.find("a").unwrap().template
    };
    let renders = r#"{"model_family": "gemma4", "renderer": "gemma4", "parser": "gemma4"}"#;
    assert_eq!(found("{{ .Prompt }}", renders), None);
    assert_eq!(found("{{.Prompt}}\n", renders), None);
    assert_eq!(found("<s>{{ .Prompt }}", renders).as_deref(), Some("<s>{{ .Prompt }}"));
    for other in ["{}", r#"{"renderer": ""}"#, r#"{"renderer": 7}"#, "[1]", "no JSON"] {
        assert_eq!(found("{{ .Prompt }}", other).as_deref(), Some("{{ .Prompt }}"), "{other}");
    }
    std::fs::write(store.blob_path(renders.as_bytes()), "cut").unwrap();
    let layers = json!([store.layer("model", b"gguf bytes")]);
    let config =
        json!({ "mediaType": "x", "digest": format!("sha256:{}", hex(renders.as_bytes())), "size": renders.len() });
    store.manifest(
        "registry.ollama.ai/library/a/latest",
        json!({ "schemaVersion": 2, "layers": layers, "config": config }).to_string(),
    );
    assert!(store.refused("a").contains("3"), "the config's length is checked");
}

#[test]
fn users_hosts_and_the_default_tag_have_folders_of_their_own() {
    let store = Store::new();
    let model = |content: &[u8]| vec![store.layer("model", content)];
    store.model("registry.ollama.ai/library/a/latest", model(b"1"));
    store.model("registry.ollama.ai/me/a/latest", model(b"2"));
    store.model("hf.co/me/a-GGUF/Q4_K_M", model(b"3"));
    for (name, content) in
        [("a", "1"), ("a:latest", "1"), ("me/a", "2"), ("hf.co/me/a-GGUF:Q4_K_M", "3"), ("ollama://me/a", "2")]
    {
        assert_eq!(std::fs::read_to_string(store.find(name).unwrap().model.path).unwrap(), content);
    }
    let listed: Vec<String> = store.stores().list().iter().map(|listed| listed.name.to_string()).collect();
    assert_eq!(listed, ["hf.co/me/a-GGUF:Q4_K_M", "a:latest", "me/a:latest"]);
}

#[test]
fn a_store_need_not_be_in_the_file_system() {
    let store = Store::new();
    let layers = ["model", "params"]
        .map(|kind| store.layer(kind, if kind == "params" { b"{\"top_k\": 7}" } else { b"gguf bytes" }));
    store.model("registry.ollama.ai/me/a/e2b", layers.to_vec());
    let memory = MemoryDirectory::new();
    let mut folders = vec![String::new()];
    let files = FileDirectory::new(store.root());
    while let Some(folder) = folders.pop() {
        for name in files.names(&folder, 99).unwrap() {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            match files.item(&path).unwrap() {
                Item::Folder => folders.push(path),
                Item::File { bytes } => {
                    memory.write(&path, &mut |out| out.write_all(&files.read(&path, bytes)?)).unwrap();
                }
            }
        }
    }
    let stores = Stores::of([Arc::new(memory) as Arc<dyn Directory>]);
    assert!(stores.any());
    assert_eq!(stores.list().iter().map(|listed| listed.name.to_string()).collect::<Vec<_>>(), ["me/a:e2b"]);
    let entry = stores.find(&"me/A:e2b".parse().unwrap()).unwrap();
    let mut bytes = [0; 10];
    entry.model.open().unwrap().read_at(0, &mut bytes).unwrap();
    assert_eq!((&bytes, entry.params.number("top_k")), (b"gguf bytes", Some(7.0)));
    assert_eq!(entry.model.path, Path::new(&format!("blobs/sha256-{}", hex(b"gguf bytes"))));
    entry.verify(&|_| {}).unwrap();
    let line = stores.find(&"b".parse().unwrap()).unwrap_err().to_string();
    assert!(line.contains("it has me/a:e2b"), "{line}");
}

#[test]
fn the_first_store_wins() {
    let (first, second) = (Store::new(), Store::new());
    for (store, content) in [(&first, b"1"), (&second, b"2")] {
        store.model("registry.ollama.ai/library/a/latest", vec![store.layer("model", content)]);
    }
    let stores = Stores::new([first.root().to_owned(), second.root().to_owned()]);
    assert_eq!(std::fs::read(stores.find(&"a".parse().unwrap()).unwrap().model.path).unwrap(), b"1");
    assert_eq!(stores.list().len(), 1);
}

#[test]
fn a_missing_tag_lists_the_near_ones() {
    let store = Store::new();
    assert!(store.refused("gemma4:e2b").contains("holds no models"));
    assert_eq!(
        Stores::new([]).find(&"a".parse().unwrap()).unwrap_err().to_string(),
        "Ollama has no a:latest here; it has no models on this machine"
    );
    for tag in ["gemma4/e4b", "gemma4/31b", "gemma3/4b", "qwen3/8b", "qwen3/0.6b", "unrelated-name/x"] {
        store.model(&format!("registry.ollama.ai/library/{tag}"), vec![store.layer("model", b"x")]);
    }
    let line = store.refused("gemma4:e2b");
    assert!(line.starts_with("Ollama has no gemma4:e2b here; it has gemma4:e4b, gemma4:31b, gemma3:4b"), "{line}");
    assert!(!line.contains("unrelated"), "{line}");
    assert!(store.refused("gema4").contains("gemma4:"));
}

#[test]
fn a_blob_that_is_missing_cut_or_another_says_so() {
    let store = Store::new();
    let content = b"a model of some length";
    store.model("registry.ollama.ai/library/a/latest", vec![store.layer("model", content)]);
    let path = store.blob_path(content);
    std::fs::write(&path, &content[..5]).unwrap();
    let line = store.refused("a");
    assert!(line.contains("has 5 bytes, the manifest says 22 (it was cut short)"), "{line}");
    std::fs::write(&path, [&content[..], b"more"].concat()).unwrap();
    assert!(store.refused("a").contains("another file"));
    std::fs::write(&path, b"b model of some length").unwrap();
    let entry = store.find("a").unwrap();
    let line = entry.verify(&|_| {}).unwrap_err().to_string();
    assert!(line.contains(&format!("digest sha256:{}", hex(b"b model of some length"))), "{line}");
    std::fs::remove_file(&path).unwrap();
    assert!(store.refused("a").contains("is missing; pull it again"));
    std::fs::create_dir(&path).unwrap();
    assert!(store.refused("a").contains("is missing"), "a folder is no blob");
}

#[test]
fn a_manifest_that_lies_is_refused_with_the_reason() {
    let store = Store::new();
    let good = store.layer("model", b"x");
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut layer = good.clone();
        edit(&mut layer);
        manifest(&json!([layer]))
    };
    let digest = |text: &str| with(&|layer| layer["digest"] = text.into());
    let long = format!("sha256:{}", "0".repeat(65));
    let cases = [
        (String::new(), "EOF"),
        (json!("long ".repeat(1000)).to_string(), "invalid type: string \"long"),
        (format!("{{\"x\": {}", "[".repeat(100_000)), "EOF"),
        (json!({ "schemaVersion": 1, "layers": [] }).to_string(), "version 1"),
        (manifest(&json!([])), "no model layer"),
        (manifest(&json!([good, good])), "2 model layers"),
        (manifest(&json!([store.layer("tensor", b"t")])), "MLX"),
        (digest("sha256:../../../etc/passwd"), "is not a digest"),
        (digest("md5:00"), "is not a digest"),
        (digest(&long), "is not a digest"),
        (digest(&format!("sha256:{}", "A".repeat(64))), "is not a digest"),
        (with(&|layer| layer["size"] = (-1).into()), "invalid value"),
        (with(&|layer| layer["size"] = 2.into()), "cut short"),
        (with(&|layer| drop(layer.as_object_mut().unwrap().remove("digest"))), "missing field `digest`"),
        (format!("{}{}", manifest(&json!([good])), " ".repeat(1 << 20)), "larger than"),
    ];
    for (content, reason) in cases {
        store.manifest("registry.ollama.ai/library/a/latest", &content);
        let line = store.refused("a");
        assert!(line.contains(reason) && line.len() < 1000, "{reason}: {line}");
        assert!(store.stores().list()[0].entry.is_err());
    }
}

#[test]
fn parameters_and_texts_of_the_wrong_kind_are_refused() {
    let store = Store::new();
    for (kind, content, reason) in [
        ("params", b"[]".to_vec(), "its parameters cannot be read"),
        ("params", b"{\"stop\": [1]}".to_vec(), "a stop is not a string"),
        ("system", vec![b'x'; (1 << 20) + 1], "its system has 1.0 MB, more than"),
    ] {
        store.model(
            "registry.ollama.ai/library/a/latest",
            vec![store.layer("model", b"x"), store.layer(kind, &content)],
        );
        let line = store.refused("a");
        assert!(line.contains(reason), "{line}");
    }
}

#[test]
fn parameters_mean_what_they_mean_in_ollama() {
    let store = Store::new();
    let params = |json: &str| {
        store.model(
            "registry.ollama.ai/library/a/latest",
            vec![store.layer("model", b"x"), store.layer("params", json.as_bytes())],
        );
        store.find("a").map(|entry| entry.params)
    };
    let base = Sampling { seed: 3, ..Sampling::default() };
    let sampling = |json: &str| params(json).unwrap().sampling(base.clone());
    assert_eq!(sampling(r#"{"seed": -1, "num_predict": -1}"#).unwrap(), base);
    let all = r#"{"temperature": 0.5, "top_k": 7, "top_p": 0.25, "min_p": 0.125, "repeat_penalty": 1.5, "repeat_last_n": 9,
        "frequency_penalty": 0.5, "presence_penalty": -1, "seed": 18446744073709551615}"#;
    let expected = Sampling {
        temperature: 0.5,
        top_k: 7,
        top_p: 0.25,
        min_p: 0.125,
        repetition_penalty: 1.5,
        last_n: 9,
        frequency_penalty: 0.5,
        presence_penalty: -1.0,
        seed: u64::MAX,
    };
    assert_eq!(sampling(all).unwrap(), expected);
    let ends = sampling(r#"{"top_k": -1, "top_p": 0, "repeat_last_n": -1}"#).unwrap();
    assert_eq!((ends.top_k, ends.top_p, ends.last_n), (0, f32::MIN_POSITIVE, u32::MAX));
    for wrong in [
        r#"{"temperature": -1}"#,
        r#"{"top_p": 2}"#,
        r#"{"min_p": -0.1}"#,
        r#"{"repeat_penalty": 0}"#,
        r#"{"top_k": 1e10}"#,
    ] {
        let line = sampling(wrong).unwrap_err().to_string();
        assert!(line.starts_with("Ollama's parameters have "), "{line}");
    }
    assert!(params(r#"{"temperature": "0.7"}"#).unwrap_err().to_string().contains("temperature is not a number"));
    assert_eq!(
        (params(r#"{"num_predict": 5}"#).unwrap().max_tokens(), params(r#"{"num_predict": -2}"#).unwrap().max_tokens()),
        (Some(5), None)
    );
}

#[test]
fn every_parameter_applies_changes_no_answer_or_is_listed() {
    let store = Store::new();
    let unapplied = |json: Value| {
        let params = store.layer("params", json.to_string().as_bytes());
        store.model("registry.ollama.ai/library/a/latest", vec![store.layer("model", b"x"), params]);
        store.find("a").unwrap().params.unapplied
    };
    let applies = [
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "repeat_penalty",
        "repeat_last_n",
        "frequency_penalty",
        "presence_penalty",
    ];
    for name in applies.iter().chain(&["seed", "num_ctx", "num_predict", "num_keep"]) {
        assert!(unapplied(json!({ *name: 1 })).is_empty(), "{name}");
    }
    for name in [
        "num_batch",
        "num_gpu",
        "main_gpu",
        "num_thread",
        "use_mmap",
        "use_mlock",
        "numa",
        "low_vram",
        "f16_kv",
        "mirostat_tau",
    ] {
        assert!(unapplied(json!({ name: 1 })).is_empty(), "{name}");
    }
    for (name, neutral, other) in [
        ("typical_p", json!(1.0), json!(0.5)),
        ("tfs_z", json!(1), json!(0.9)),
        ("mirostat", json!(0), json!(1)),
        ("penalize_newline", json!(true), json!(false)),
        ("rope_frequency_base", json!(0), json!(1e6)),
        ("rope_frequency_scale", json!(1), json!(0.5)),
    ] {
        assert!(unapplied(json!({ name: neutral })).is_empty(), "{name}");
        assert_eq!(unapplied(json!({ name: other })), [format!("{name} = {other}")]);
    }
    let long = unapplied(json!({ "a name that Ollama has not yet": "v".repeat(1000) }));
    assert!(long[0].starts_with("a name that Ollama has not yet = \"vvv") && long[0].len() < 100, "{long:?}");
}

#[test]
fn strange_files_in_a_store_are_passed_over() {
    let store = Store::new();
    store.model("registry.ollama.ai/library/a/latest", vec![store.layer("model", b"x")]);
    store.manifest("registry.ollama.ai/library/a/.DS_Store", "");
    store.manifest("registry.ollama.ai/stray", "");
    store.manifest("registry.ollama.ai/library/a/deep/er", "");
    store.manifest("registry.ollama.ai/library/with space/latest", "");
    assert_eq!(store.stores().list().len(), 1);
}

#[test]
fn mutated_manifests_and_names_never_panic_nor_leave_the_folder() {
    let layer = |kind: &str| json!({ "mediaType": format!("application/vnd.ollama.image.{kind}"), "digest": format!("sha256:{}", hex(kind.as_bytes())), "size": 5 });
    let seed = manifest(&json!([layer("model"), layer("params"), layer("template")])).into_bytes();
    assert!(fuzz(&seed));
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % end as u64) as usize
    };
    let parts: [&[u8]; 10] =
        [b"..", b"/", b"\\", b"\"", b"{", b"]", b"sha256:", b"\xff", b"9999999999999999999999", b"\\u0000"];
    let mut parsed = 0;
    let rounds = common::rounds(20_000) as usize;
    for _ in 0..rounds {
        let mut bytes = seed.clone();
        for _ in 0..=below(3) {
            let at = below(bytes.len());
            match below(5) {
                0 => bytes[at] ^= 1 << below(8),
                1 => bytes.truncate(at.max(1)),
                2 => drop(bytes.splice(at..at, parts[below(parts.len())].iter().copied())),
                3 => drop(bytes.drain(at..(at + 1 + below(8)).min(bytes.len()))),
                _ => bytes[at] = below(256) as u8,
            }
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
        parsed += usize::from(fuzz(&bytes));
        if let Ok(name) = String::from_utf8_lossy(&bytes[..bytes.len().min(below(12) + 1)]).parse::<Name>() {
            assert!(!name.to_string().contains(".."), "{name}");
        }
    }
    assert!((rounds / 20..rounds / 20 * 19).contains(&parsed), "{parsed} of {rounds} parsed");
}
