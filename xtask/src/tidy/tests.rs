//! Every rule finds what breaks it, and nothing in what keeps it.

use super::*;

fn tree(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(path, text)| ((*path).to_string(), Some((*text).to_string()))).collect()
}

fn findings(rule: impl Fn(&Files, &mut Vec<String>), files: &[(&str, &str)]) -> usize {
    let mut found = vec![];
    rule(&tree(files), &mut found);
    found.len()
}

fn in_file(rule: fn(&str, &str, &mut Vec<String>), path: &str, text: &str) -> usize {
    let mut found = vec![];
    rule(path, text, &mut found);
    found.len()
}

#[test]
fn heads_and_lengths_of_files() {
    assert_eq!(in_file(head_and_length, "a.rs", "//! A.\n"), 0);
    assert_eq!(in_file(head_and_length, "a.rs", "use b;\n"), 1);
    assert_eq!(in_file(head_and_length, "a.wgsl", "fn f() {}\n"), 1);
    assert_eq!(in_file(head_and_length, "a.rs", &format!("//! A.\n{}", "\n".repeat(499))), 0);
    assert_eq!(in_file(head_and_length, "a.rs", &format!("//! A.\n{}", "\n".repeat(500))), 1);
    assert_eq!(in_file(head_and_length, "a.wgsl", &format!("// A.\n{}", "\n".repeat(240))), 1);
}

#[test]
fn lengths_of_functions() {
    let function = |lines: usize| format!("    pub fn f() {{\n{}    }}\n", "        g();\n".repeat(lines - 2));
    assert_eq!(in_file(functions, "a.rs", &function(120)), 0);
    assert_eq!(in_file(functions, "a.rs", &function(121)), 1);
}

#[test]
fn words_that_a_crate_never_says() {
    assert_eq!(in_file(words, "crates/model/src/a.rs", "use wgpu::Device;\n"), 1);
    assert_eq!(in_file(words, "crates/model/src/a.rs", "// what wgpu does\nlet not_wgpu = 1;\n"), 0);
    assert_eq!(in_file(words, "crates/kernels/src/a.rs", "std::fs::read(path)\n"), 1);
    assert_eq!(in_file(words, "crates/gguf/src/a.rs", "std::fs::read(path)\n"), 0);
    assert_eq!(in_file(words, "a.rs", concat!("// TO", "DO\n")), 1);
    assert_eq!(in_file(words, "a.toml", concat!("path = \"/ro", "ot/x\"\n")), 1);
}

#[test]
fn unsafe_code_without_a_reason() {
    let code = ("crates/gguf/src/map.rs", "unsafe { map() }\n");
    assert_eq!(findings(unsafe_code, &[code, ("crates/gguf/src/lib.rs", "//! The container.\n")]), 1);
    assert_eq!(findings(unsafe_code, &[code, ("crates/gguf/src/lib.rs", "//! Unsafe code maps files.\n")]), 0);
}

#[test]
fn dependencies_to_the_right() {
    let manifests = |kernels: &'static str| {
        let mut all = ORDER.map(|krate| (format!("crates/{krate}/Cargo.toml"), "[dependencies]\ngguf.workspace = true\n")).to_vec();
        all[0].1 = "[dependencies]\nhalf.workspace = true\n";
        all[2].1 = kernels;
        all
    };
    let count = |kernels| {
        let all = manifests(kernels);
        findings(dependencies, &all.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>())
    };
    assert_eq!(count("[dependencies]\nwgpu.workspace = true\ncpu-ref = { path = \"../cpu-ref\" }\n"), 0);
    assert_eq!(count("[dev-dependencies]\nmodel.workspace = true\n"), 1);
    assert_eq!(count("[dependencies]\nanyhow = \"1\"\n"), 1);
    assert_eq!(count("[features]\nmodel = []\n"), 0);
}

#[test]
fn operations_without_one_of_their_files() {
    let all = [
        ("shaders/add.wgsl", "// a"),
        ("shaders/bench_read.wgsl", "// a"),
        ("crates/kernels/src/ops/add.rs", "//! A.\n    cpu: cpu_ref::add,\n"),
        ("crates/cpu-ref/src/ops/add.rs", "//! A.\n"),
    ];
    assert_eq!(findings(stems, &all), 0);
    for missing in 0..all.len() {
        let rest: Vec<_> = (0..all.len()).filter(|n| *n != missing).map(|n| all[n]).collect();
        assert_eq!(findings(stems, &rest), 1, "without {}", all[missing].0);
    }
}

#[test]
fn markdown_at_the_root() {
    assert_eq!(findings(markdown, &[("README.md", ""), ("docs/contracts.md", "")]), 0);
    assert_eq!(findings(markdown, &[("PROGRESS.md", "")]), 1);
}
