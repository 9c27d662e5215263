//! Runs the examples of `--help` and README in a shell. The files they name are small models.

use crate::{lora, run, tiny, tools};
use std::path::Path;
use std::process::{Command, Stdio};

/// The commands whose help examples are run. The examples of `pull` and `rm` need a hub (hub.rs).
const COMMANDS: [&str; 15] = [
    "run",
    "tokenize",
    "logits",
    "perplexity",
    "bench",
    "gradients",
    "train",
    "merge",
    "inspect",
    "devices",
    "tune",
    "list",
    "doctor",
    "completions",
    "man",
];

/// Words of examples that the test leaves out: a model in Ollama and a GPU, which it does not have,
/// and a server, which does not end (web.rs).
const ABSENT: [&str; 3] = ["gemma4:e2b", "RTX 4090", "weft web"];

/// The example commands of a help text, without their descriptions.
pub fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| line.starts_with("  "));
    commands(lines.filter(|line| line.contains("weft ")).map(|line| line.trim_start()))
}

/// The commands of example lines. A command ends at two spaces, a `#` or a pipe to `jq`.
fn commands<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let end = |line: &str| ["  ", " #", " | jq"].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    let lines = lines.filter(|line| ABSENT.iter().all(|absent| !line.contains(absent)));
    let lines = lines.filter(|line| cfg!(feature = "hub") || !line.contains("hf:"));
    lines.map(|line| line[..end(line)].trim_end().to_string()).collect()
}

/// A folder with all files that examples name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let chatty = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/default.gguf");
    // An existing file comes before a model of this name.
    for name in ["qwen3-0.6b", "qwen3-8b", "model.gguf"] {
        std::fs::copy(&chatty, at(name)).expect("room");
    }
    let repo = folder.path().join(".cache/huggingface/hub/models--Qwen--Qwen3-8B-GGUF");
    let commit = "1".repeat(40);
    let snapshot = repo.join("snapshots").join(&commit);
    [&repo.join("refs"), &snapshot].into_iter().for_each(|path| std::fs::create_dir_all(path).expect("room"));
    std::fs::write(repo.join("refs/main"), &commit).expect("room");
    std::fs::copy(&chatty, snapshot.join("Qwen3-8B-Q4_K_M.gguf")).expect("room");
    // Answers stand behind their prompts, as training needs it.
    let template =
        tools::TEMPLATE.replace("{{ messages[-1].content }}", "{% for m in messages %}{{ m.content }}{% endfor %}");
    tiny::builder(0.1).set("tokenizer.chat_template", template).save(at("tiny.gguf")).expect("room");
    for name in ["adapter.gguf", "terse.gguf"] {
        lora::builder(32).save(at(name)).expect("room");
    }
    ["french", "adapter"].iter().for_each(|name| lora::write_peft(&at(name)));
    let words = "A loom holds the warp so that the weft can pass. ".repeat(8);
    for name in ["wiki.test.raw", "held-out.txt", "book.txt", "notes.txt", "README.md"] {
        std::fs::write(at(name), &words).expect("room");
    }
    std::fs::write(at("typed.txt"), "What is a loom?\n").expect("room");
    std::fs::write(at("tokens.json"), "[1, 2, 3]").expect("room");
    let tool = r#"[{"type": "function", "function": {"name": "weather", "description": "now", "parameters": {"type": "object", "properties": {}}}}]"#;
    std::fs::write(at("tools.json"), tool).expect("room");
    std::fs::write(at("facts.jsonl"), "{\"ids\": [5, 6, 7, 8]}\n{\"ids\": [9, 10], \"targets\": [-100, 3]}\n")
        .expect("room");
    std::fs::create_dir(at("examples")).expect("room");
    std::fs::write(at("examples/facts.jsonl"), crate::facts::FILE).expect("room");
    let chat = r#"{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}"#;
    std::fs::write(at("chats.jsonl"), format!("{chat}\n{chat}\n")).expect("room");
    std::fs::create_dir(at("models")).expect("room");
    for name in ["bin", ".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
        std::fs::create_dir_all(at(name)).expect("room");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A pager of manual pages that a machine may lack.
        std::fs::write(at("bin/man"), "#!/bin/sh\ngrep -q '[.]TH' || exit 1\n").expect("room");
        std::fs::set_permissions(at("bin/man"), std::fs::Permissions::from_mode(0o755)).expect("a file of ours");
    }
    // A git repository with a change, for the example with `git diff`.
    let git = |words: &[&str]| {
        assert!(Command::new("git").args(words).current_dir(folder.path()).output().expect("git").status.success())
    };
    git(&["init", "-q"]);
    git(&["add", "notes.txt"]);
    std::fs::write(at("notes.txt"), words + "It is of wood.").expect("room");
    folder
}

/// Lines with these words use a tiny model: the default model lacks the feature or takes minutes.
const SMALL: [&str; 11] = [
    "--lora",
    "--init",
    "weft merge",
    "--tools",
    "--no-think",
    "weft bench",
    "weft perplexity",
    "weft tune ",
    "weft train",
    "--ctx",
    "weft doctor",
];

/// Runs a line in the folder. The tiny model never ends an answer, so `-n` limits its tokens.
fn runs(line: &str, folder: &Path) {
    let small = SMALL.iter().any(|small| line.contains(small));
    let mut line = line.to_string();
    if small {
        ["qwen3-8b", "model.gguf"].iter().for_each(|name| line = line.replace(name, "tiny.gguf"));
    }
    if line.contains("weft run tiny.gguf") && !line.contains(" -n ") {
        line = line.replace("weft run tiny.gguf", "weft run tiny.gguf -n 8");
    }
    // A profile needs a GPU with timestamps, and `auto` would choose the CPU for such a small
    // model.
    if line.contains("--profile") {
        line += " --device gpu";
    }
    // The times are not read, so one repetition and small numbers are enough.
    if line.contains("weft bench") {
        line = line.replace(" -r 5", "") + " -r 1";
        for (large, small) in [("4096", "96"), ("2048", "48"), ("1024", "32"), ("512", "40"), ("128", "8")] {
            line = line.replace(large, small);
        }
    }
    // The default model takes the doctor minutes on a software driver.
    if line.contains("weft doctor") {
        line = line.replace("weft doctor tiny.gguf", "weft doctor").replace("weft doctor", "weft doctor tiny.gguf");
        if !line.contains("--quick") && !line.contains("--all") {
            line += " --ctx 16";
        }
    }
    // `tune` refuses the software driver that `auto` never takes.
    if line.contains("weft tune") && !line.contains("--forget") {
        line = line.replace(" --seconds 30", "") + " --seconds 1 --device gpu";
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_weft")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{}:{path}", folder.join("bin").display(), bin.display());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &line])
        .current_dir(folder)
        .env("PATH", path)
        .env("WEFT_CACHE_DIR", folder.join("cache"))
        .env("HOME", folder)
        .env("HF_HUB_OFFLINE", "1")
        .env_remove("HF_HOME")
        .env_remove("HF_HUB_CACHE")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("WEFT_LIMITS");
    let began = std::time::Instant::now();
    // A file on stdin replaces a user who types at a terminal.
    let typed = std::fs::File::open(folder.join("typed.txt")).expect("a file");
    let output = shell.stdin(Stdio::from(typed)).output().expect("a shell");
    println!("{:?} {line}", began.elapsed());
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn examples_of_the_help_run() {
    let folder = folder();
    for command in COMMANDS {
        let lines = examples(&run(&[command, "--help"]).good());
        assert!(!lines.is_empty(), "{command} has no examples");
        lines.iter().for_each(|line| runs(line, folder.path()));
    }
}

#[test]
fn examples_of_the_page_run() {
    let folder = folder();
    let page = include_str!("../../../../README.md");
    let lines = commands(
        page.lines()
            .filter(|line| (line.starts_with("weft ") && !line.starts_with("weft = ")) || line.starts_with("cat ")),
    );
    assert!(lines.len() > 8, "{lines:?}");
    lines.iter().for_each(|line| runs(line, folder.path()));
}
