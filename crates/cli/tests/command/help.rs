//! Help, usage errors, completions and manual pages.

use crate::{run, weft};

const COMMANDS: [&str; 15] = [
    "run",
    "list",
    "inspect",
    "tokenize",
    "logits",
    "perplexity",
    "bench",
    "devices",
    "doctor",
    "gradients",
    "train",
    "merge",
    "tune",
    "completions",
    "man",
];

#[test]
fn every_command_has_help_with_examples() {
    let top = run(&["--help"]).good();
    for command in COMMANDS {
        assert!(top.contains(&format!("\n  {command} ")), "{command}");
        let help = run(&[command, "--help"]).good();
        assert!(help.contains("Usage: weft ") && help.contains(&format!("Examples:\n  weft {command}")), "{help}");
    }
}

#[test]
fn the_page_of_the_command_lists_every_command() {
    let top = run(&["--help"]).good();
    let list = top.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let of_help = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let of_help: Vec<&str> = of_help.filter(|name| !name.is_empty() && *name != "help").collect();
    assert!(of_help.len() >= COMMANDS.len() && COMMANDS.iter().all(|name| of_help.contains(name)), "{of_help:?}");
    let page = include_str!("../../README.md");
    // The first column of the table: one command, or several.
    let column = page.lines().filter_map(|line| line.strip_prefix("| `weft ")?.split(" | ").next());
    let of_page = column.flat_map(|commands| commands.split("`weft ")).filter_map(|of| of.split([' ', '`']).next());
    let of_page: Vec<&str> = of_page.collect();
    for name in &of_help {
        assert!(of_page.contains(name), "crates/cli/README.md has no row for weft {name}");
    }
    for name in of_page {
        assert!(of_help.contains(&name), "crates/cli/README.md has a row for weft {name}, which is no command");
    }
}

/// What one came for comes first: options about the machine have a heading of their own at the end.
#[test]
fn options_of_the_machine_stand_last() {
    for command in ["run", "bench", "train", "perplexity", "logits", "inspect"] {
        let help = run(&[command, "--help"]).good();
        let (first, machine) = help.split_once("Device, memory and cache:").expect("the heading");
        for flag in ["--device", "--no-cache", "--no-tune", "--without", "--mmap"] {
            let is_here = |text: &str| text.contains(&format!("      {flag}")) || text.contains(&format!(", {flag}"));
            assert!(is_here(machine) && !is_here(first), "{command} {flag}");
        }
        assert!(machine.lines().all(|line| !line.ends_with(':') || line == "Examples:"), "{command}: {machine}");
    }
    let help = run(&["run", "--help"]).good();
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at("Options:") < at("  -p, --prompt") && at("  -p, --prompt") < at("Sampling:"), "{help}");
    assert!(at("Sampling:") < at("Device, memory and cache:"), "{help}");
}

#[test]
fn the_help_of_mmap_says_its_risk() {
    for command in ["run", "bench", "perplexity"] {
        let help = run(&[command, "--help"]).good();
        let (_, mmap) = help.split_once("--mmap").expect("the flag");
        let words: Vec<&str> = mmap.split("--no-mmap").next().unwrap().split_whitespace().collect();
        assert!(words.join(" ").contains("cuts the file short meanwhile, weft is killed"), "{help}");
    }
}

#[test]
fn what_cannot_be_meant_exits_with_2_and_prints_no_result() {
    let cases: [&[&str]; 27] = [
        &[],
        &["weave"],
        &["run", "--nonsense"],
        &["run", "-p", ""],
        &["run"],
        &["run", "-p", "x", "--temp", "-1"],
        &["run", "-p", "x", "--top-p", "nan"],
        &["run", "-p", "x", "--stop", ""],
        &["run", "-p", "x", "-n", "0"],
        &["run", "-p", "x", "-t", "0"],
        &["run", "default", "x", "-p", "y"],
        &["run", "-p", "x", "--raw", "--system", "y"],
        &["run", "-p", "x", "--think", "--no-think"],
        &["run", "-p", "x", "--raw", "--think"],
        &["run", "-p", "x", "--raw", "--tools", "tools.json"],
        &["list", "--kv", "f64"],
        &["run", "-p", "x", "--load-session", "z", "--system", "y"],
        &["run", "-p", "x", "--shift-context=y"],
        &["logits", "--tokens", "1,-2", "-o", "x.npy"],
        &["bench", "-p", "0", "-n", "0"],
        &["tune", "--seconds", "0"],
        &["tune", "--seconds", "9999"],
        &["tune", "--forget", "--seconds", "5"],
        &["tune", "--device", "cpu"],
        &["tune", "--no-cache"],
        &["tokenize", "--decode", "1", "model.gguf", "text"],
        &["perplexity", "--ctx", "16", "--stride", "16", concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")],
    ];
    for words in cases {
        let run = run(words);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{words:?}: {}", run.err);
        assert!(!run.err.is_empty(), "{words:?}");
    }
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let bash = run(&["completions", "bash"]).good();
    assert!(COMMANDS.iter().all(|command| bash.contains(command)));
    assert!(run(&["man"]).good().contains(".TH WEFT 1"));
    assert!(run(&["man", "run"]).good().contains("min\\-p"));
    assert!(run(&["man", "weave"]).failed(2).contains("perplexity"));
    let folder = tempfile::tempdir().unwrap();
    run(&["man", "--all", folder.path().to_str().unwrap()]).good();
    for command in COMMANDS {
        assert!(folder.path().join(format!("weft-{command}.1")).is_file(), "{command}");
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let mut child =
        weft(&["inspect"]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
