//! Models from a hub that runs on loopback, in a cache in a temporary folder.

mod downloads;
mod refusals;
mod server;

use crate::examples::examples;
use crate::{Run, tiny, weft};
use server::{Server, sha256};
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

static MODEL: LazyLock<Vec<u8>> = LazyLock::new(|| tiny::builder(0.5).to_bytes().unwrap());

/// A hub, and a user's folder.
pub struct World {
    server: Server,
    home: tempfile::TempDir,
}

impl World {
    fn new(files: &[(&str, &[u8])]) -> Self {
        Self { server: Server::new(files), home: tempfile::tempdir().unwrap() }
    }

    /// A hub with one model, `hf:me/M-GGUF:Q8_0`.
    pub fn one() -> Self {
        Self::new(&[("M-Q8_0.gguf", &MODEL)])
    }

    /// The user's folder.
    pub fn path(&self) -> &std::path::Path {
        self.home.path()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = weft(words);
        for name in [
            "HF_HUB_CACHE",
            "HUGGINGFACE_HUB_CACHE",
            "HF_TOKEN",
            "HUGGING_FACE_HUB_TOKEN",
            "HF_TOKEN_PATH",
            "HF_HUB_OFFLINE",
            "TRANSFORMERS_OFFLINE",
            "WEFT_MODELS",
            "WEFT_DEBUG",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "https_proxy",
            "http_proxy",
            "ALL_PROXY",
            "all_proxy",
        ] {
            command.env_remove(name);
        }
        let home = self.home.path();
        command
            .env("HF_ENDPOINT", &self.server.address)
            .env("HF_HOME", home.join("hf"))
            .env("HOME", home)
            .env("OLLAMA_MODELS", home.join("ollama"))
            .env("WEFT_HUB_TEST", "pause_ms=1")
            .current_dir(home);
        command
    }

    fn run(&self, words: &[&str]) -> Run {
        self.command(words).output().expect("the binary starts").into()
    }

    fn with(&self, words: &[&str], variables: &[(&str, &str)]) -> Run {
        self.command(words).envs(variables.iter().copied()).output().expect("the binary starts").into()
    }

    /// Runs to a good end, whatever stderr says.
    #[track_caller]
    fn good(&self, words: &[&str]) -> String {
        let run = self.run(words);
        assert_eq!(run.code, 0, "{}", run.err);
        run.out
    }

    /// A path in the repository's folder of the cache.
    fn repo(&self, path: &str) -> PathBuf {
        self.home.path().join("hf/hub/models--me--M-GGUF").join(path)
    }

    /// The path of a file in the snapshot of commit `1111..`.
    fn file(&self, file: &str) -> PathBuf {
        self.repo(&format!("snapshots/{}/{file}", "1".repeat(40)))
    }

    fn blob(&self, bytes: &[u8]) -> PathBuf {
        self.repo(&format!("blobs/{}", sha256(bytes)))
    }

    fn partial(&self, bytes: &[u8]) -> PathBuf {
        self.repo(&format!("blobs/{}.incomplete", sha256(bytes)))
    }
}

const RUN: [&str; 8] = ["-p", "ab", "--device", "cpu", "-n", "2", "--temp", "0"];

#[test]
fn a_model_is_fetched_once_and_then_runs_without_the_network() {
    let world = World::one();
    let run =
        |variables: &[(&str, &str)]| world.with(&[&["run", "hf.co/me/M-GGUF:q8_0"], &RUN[..]].concat(), variables);
    let first = run(&[]);
    assert!(first.code == 0 && first.err.contains("downloading"), "{}", first.err);
    assert_eq!(std::fs::read(world.file("M-Q8_0.gguf")).unwrap(), *MODEL);
    assert_eq!(std::fs::read_to_string(world.repo("refs/main")).unwrap(), "1".repeat(40));
    assert!(!world.partial(&MODEL).exists());
    #[cfg(unix)]
    {
        let link = std::fs::read_link(world.file("M-Q8_0.gguf")).unwrap();
        assert_eq!(link, PathBuf::from(format!("../../blobs/{}", sha256(&MODEL))));
    }
    let asked = world.server.asked("").len();
    for variables in [&[][..], &[("HF_HUB_OFFLINE", "1")]] {
        assert_eq!(run(variables).good(), first.out);
    }
    let offline = world.with(&["pull", "hf:me/M-GGUF", "--json"], &[("HF_HUB_OFFLINE", "1")]);
    assert!(offline.err.contains("is not asked for a newer file") && offline.json()[0]["fetched_bytes"] == 0);
    assert_eq!(world.server.asked("").len(), asked, "the network was asked again");
    assert!(world.run(&["inspect", "hf:me/M-GGUF", "--verify"]).good().contains("verified"));
    std::fs::write(world.home.path().join("t.txt"), "abababab").unwrap();
    world.run(&["perplexity", "hf:me/M-GGUF", "t.txt", "--ctx", "4", "--device", "cpu"]).good();
    assert!(world.run(&["tokenize", "hf:me/M-GGUF", "ab"]).good().contains("\"ab\""));
}

#[test]
fn pull_asks_for_news_and_keeps_the_older_snapshot() {
    let world = World::one();
    assert!(world.good(&["pull", "hf:me/M-GGUF"]).contains("hf:me/M-GGUF:Q8_0 is here"));
    assert!(world.run(&["pull", "hf:me/M-GGUF"]).good().contains("was here already"));
    assert_eq!(world.server.asked("/content/").len(), 1);
    let newer = tiny::builder(0.25).to_bytes().unwrap();
    world.server.commit("2", "M-Q8_0.gguf", &newer);
    let pulled: serde_json::Value = serde_json::from_str(&world.good(&["pull", "hf:me/M-GGUF", "--json"])).unwrap();
    assert_eq!(pulled[0]["fetched_bytes"], newer.len());
    assert_eq!(std::fs::read(pulled[0]["files"][0].as_str().unwrap()).unwrap(), newer);
    assert!(world.file("M-Q8_0.gguf").exists());
}

#[test]
fn split_files_and_the_best_projector_come_along() {
    let files = [
        ("q8/M-Q8_0-00001-of-00002.gguf", "one"),
        ("q8/M-Q8_0-00002-of-00002.gguf", "two"),
        ("M-F16.gguf", "other"),
        ("mmproj-M-Q8_0.gguf", "poor eyes"),
        ("mmproj-M-F16.gguf", "good eyes"),
    ];
    let world = World::new(&files.map(|(name, text)| (name, text.as_bytes())));
    let run = world.run(&["pull", "hf:me/M-GGUF", "--json"]);
    assert!(run.err.contains("mmproj-M-F16.gguf came along"), "{}", run.err);
    let pulled = run.json();
    assert_eq!((&pulled[0]["model"], pulled[0]["files"].as_array().unwrap().len()), (&"hf:me/M-GGUF:Q8_0".into(), 2));
    for (file, is_here) in files.map(|(name, _)| name).into_iter().zip([true, true, false, false, true]) {
        assert_eq!(world.file(file).exists(), is_here, "{file}");
    }
    assert!(pulled[0]["projector"].as_str().unwrap().ends_with("mmproj-M-F16.gguf"));
    std::fs::remove_file(world.blob(b"two")).unwrap();
    let line = world.with(&["inspect", "hf:me/M-GGUF"], &[("HF_HUB_OFFLINE", "1")]).failed(1);
    assert!(line.contains("is not in ") && line.contains("HF_HUB_OFFLINE"), "{line}");
}

#[test]
fn a_name_that_means_several_models_lists_them() {
    let world = World::new(&[("a.gguf", b"a"), ("b.gguf", b"b")]);
    let line = world.run(&["pull", "hf:me/M-GGUF"]).failed(1);
    assert!(line.contains("hf:me/M-GGUF: the repository has several: /a.gguf, /b.gguf"), "{line}");
    world.good(&["pull", "hf:me/M-GGUF/b.gguf"]);
    let line = world.run(&["pull", "hf:me/M-GGUF:Q4_K_M"]).failed(1);
    assert!(line.contains("has no such model; it has /a.gguf, /b.gguf"), "{line}");
    assert!(world.run(&["pull", "hf:me/../x"]).failed(2).contains("is not a name of the hub"));
}

#[test]
fn list_names_models_as_other_commands_take_them_and_no_projectors() {
    let world = World::new(&[("M-Q8_0.gguf", &MODEL), ("mmproj-M-F16.gguf", b"eyes")]);
    world.good(&["pull", "hf:me/M-GGUF:Q8_0"]);
    std::fs::write(world.home.path().join("mmproj-beside.gguf"), "eyes").unwrap();
    let json = world.run(&["list", ".", "--device", "cpu", "--json"]).json();
    let rows: Vec<_> = json.as_array().unwrap().iter().map(|row| (&row["model"], &row["from"], &row["fits"])).collect();
    assert_eq!(rows.len(), 2, "{json}");
    assert_eq!(rows[1], (&"hf:me/M-GGUF:Q8_0".into(), &"hub".into(), &true.into()));
    world.run(&["inspect", "hf:me/M-GGUF:Q8_0"]).good();
}

#[test]
fn rm_removes_the_model_and_nothing_else() {
    let world = World::new(&[("M-Q8_0.gguf", &MODEL), ("M-Q4_0.gguf", b"other"), ("mmproj-M-F16.gguf", b"eyes")]);
    for tag in ["Q8_0", "Q4_0"] {
        world.good(&["pull", &format!("hf:me/M-GGUF:{tag}")]);
    }
    // An older snapshot with the same blob, and a link that leads out of the cache.
    let (outside, old) =
        (world.home.path().join("precious.gguf"), world.repo(&format!("snapshots/{}", "3".repeat(40))));
    std::fs::write(&outside, "precious").unwrap();
    std::fs::create_dir_all(&old).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(world.blob(&MODEL), old.join("Again-Q8_0.gguf")).unwrap();
        std::os::unix::fs::symlink(&outside, old.join("Out-Q4_0.gguf")).unwrap();
    }
    let line = world.run(&["rm", "hf:me/M-GGUF"]).failed(1);
    assert!(line.contains("hf:me/M-GGUF:Q4_0, hf:me/M-GGUF:Q8_0; name one"), "{line}");
    let removed = world.run(&["rm", "hf:me/M-GGUF:q8_0", "--json"]).json();
    assert!(removed[0]["freed_bytes"].as_u64().unwrap() >= MODEL.len() as u64, "{removed}");
    assert!(!world.blob(&MODEL).exists() && world.blob(b"other").exists() && world.blob(b"eyes").exists());
    world.run(&["rm", "hf:me/M-GGUF:Q4_0"]).good();
    assert!(!world.repo("").exists(), "an empty repository is left");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "precious");
    assert!(world.run(&["rm", "hf:me/M-GGUF"]).failed(1).contains("is not in the cache"));
    assert!(world.run(&["rm", "precious.gguf"]).failed(2).contains("delete it as any file"));
    assert!(world.run(&["rm", "nothing"]).failed(1).contains("`weft list` shows"));
}

#[cfg(unix)]
#[test]
fn rm_keeps_blobs_that_other_files_use_and_downloads_that_run() {
    let world = World::one();
    world.good(&["pull", "hf:me/M-GGUF"]);
    std::os::unix::fs::symlink(world.blob(&MODEL), world.file("config.json")).unwrap();
    let locks = world.home.path().join("hf/hub/.locks/models--me--M-GGUF");
    for name in ["a", "b"] {
        std::fs::write(world.repo(&format!("blobs/{name}.incomplete")), "half").unwrap();
    }
    let lock = std::fs::File::create(locks.join("a.lock")).unwrap();
    lock.lock().unwrap();
    world.run(&["rm", "hf:me/M-GGUF"]).good();
    assert!(world.blob(&MODEL).exists() && !world.file("M-Q8_0.gguf").exists());
    assert!(world.repo("blobs/a.incomplete").exists() && !world.repo("blobs/b.incomplete").exists());
}

#[cfg(unix)]
#[test]
fn a_repository_that_is_a_link_out_of_the_cache_is_left_alone() {
    let world = World::one();
    world.good(&["pull", "hf:me/M-GGUF"]);
    let elsewhere = world.home.path().join("elsewhere");
    std::fs::rename(world.repo(""), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.home.path().join("hf/hub/models--me--M-GGUF")).unwrap();
    assert!(world.run(&["rm", "hf:me/M-GGUF"]).failed(1).contains("is not in the cache"));
    assert!(elsewhere.join("refs/main").exists());
}

#[test]
fn known_models_have_short_names_and_a_list() {
    let world = World::one();
    let listed = world.run(&["pull", "--list", "--json"]).json();
    let known: serde_json::Value = serde_json::from_str(include_str!("../../models.json")).unwrap();
    for (row, known) in listed.as_array().unwrap().iter().zip(known.as_array().unwrap()) {
        for key in ["name", "address", "bytes", "sha256", "memory_4096_bytes", "licence"] {
            assert_eq!(row[key], known[key]);
        }
        assert_eq!(row["here"], false);
    }
    assert!(world.run(&["pull", "--list"]).good().contains("hf:Qwen/Qwen3-0.6B-GGUF:Q8_0"));
    let line = world.run(&["run", "Qwen3-0.6B", "-p", "x"]).failed(1);
    assert!(line.contains("the hub has no repository Qwen/Qwen3-0.6B-GGUF"), "it asks the hub of the test: {line}");
    let line = world.run(&["pull", "qwen3-8"]).failed(1);
    assert!(line.contains("there is no known model qwen3-8; near names are qwen3-8b, "), "{line}");
    assert!(world.run(&["pull", "qwen3:8b"]).failed(1).contains("`weft pull qwen3-8b`, there `ollama pull qwen3:8b`"));
    let line = world.run(&["pull", "Qwen/Qwen3-8B-GGUF"]).failed(2);
    assert!(line.contains("is spelled hf:Qwen/Qwen3-8B-GGUF"), "{line}");
    std::fs::create_dir(world.home.path().join("qwen3-4b")).unwrap();
    let line = world.run(&["inspect", "qwen3-4b"]).failed(1);
    assert!(line.contains("no repository Qwen/Qwen3-4B-GGUF"), "a folder is no model: {line}");
    let line = world.run(&["run", "qwen3:8b", "-p", "x"]).failed(1);
    assert!(line.contains("`ollama pull qwen3:8b`") && line.contains("`weft run qwen3-8b`"), "{line}");
    let line = world.run(&["run", "qwen3-8.gguf", "-p", "x"]).failed(1);
    assert!(line.contains("near names of models are qwen3-8b"), "{line}");
}

#[test]
fn examples_of_pull_and_rm_run() {
    let world = World::new(&[("M-Q4_K_M.gguf", b"four"), ("M-Q8_0.gguf", b"eight")]);
    for (command, prepared) in [("pull", &[][..]), ("rm", &["qwen3-0.6b", "qwen3-8b", "hf:Qwen/Qwen3-8B-GGUF:Q8_0"])] {
        let examples = examples(&world.run(&[command, "--help"]).good());
        assert!(examples.len() >= 3, "{examples:?}");
        for line in &examples {
            let words: Vec<&str> = line.split_whitespace().skip(1).collect();
            for words in prepared.iter().map(|name| vec!["pull", name]).chain([words]) {
                let repository = words.iter().rev().find_map(|word| match *word {
                    "qwen3-4b" => Some("Qwen/Qwen3-4B-GGUF"),
                    "qwen3-0.6b" => Some("Qwen/Qwen3-0.6B-GGUF"),
                    word if word.contains("8B") || word == "qwen3-8b" => Some("Qwen/Qwen3-8B-GGUF"),
                    _ => None,
                });
                repository.into_iter().for_each(|repository| world.server.rename(repository));
                let run = world.run(&words);
                assert_eq!(run.code, 0, "{line}: {}", run.err);
            }
        }
    }
}
