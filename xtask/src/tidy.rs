//! `tidy`: the rules of this project that no compiler checks.

use std::collections::BTreeMap;

mod cards;
mod ci;
mod circles;
mod declarations;
pub mod fields;
mod files;
mod flags;
pub mod heads;
mod messages;
mod pieces;
mod prose;
mod public;
#[cfg(test)]
mod tests;

use crate::workspace::FAMILIES;
use files::{Files, files};

/// The largest number of lines of a file, for .rs and .wgsl.
const MAX_RUST: usize = 500;
const MAX_WGSL: usize = 240;
/// The largest number of lines of a function.
const MAX_FUNCTION: usize = 120;

/// Files or functions that may exceed the limits: (path, or path and function; reason).
const LONG: &[(&str, &str)] = &[];

/// The crates in order. Each may use the crates to its left.
const ORDER: [&str; 7] = ["gguf", "cpu-ref", "kernels", "model", "train", "cli", "web"];

/// Shaders that belong to no operation: (stem, reason).
const NO_OPERATION: &[(&str, &str)] =
    &[("bench_products", "multiplies to measure it"), ("bench_read", "reads memory to measure it")];

/// Words that only these files of the libraries may contain: (word, path, reason).
const ONLY: &[(&str, &str, &str)] = &[
    (BROWSER, "crates/gguf/src/host.rs", "says what need not be shared between threads"),
    (BROWSER, "crates/kernels/src/lib.rs", "leaves out the module of functions that block"),
    (BROWSER, "crates/kernels/src/testing/drawn.rs", "a browser has no function that blocks"),
    (BROWSER, "crates/kernels/src/testing/mod.rs", "leaves out the modules of functions that block"),
    (BROWSER, "crates/kernels/src/testing/parity.rs", "leaves out the module of functions that block"),
    (BROWSER, "crates/kernels/src/testing/sweep.rs", "a browser has no function that blocks"),
    (BROWSER, "crates/kernels/src/platform/mod.rs", "chooses between the two files of the folder"),
    (BROWSER, "crates/model/src/chat/strftime.rs", "a browser has no clock"),
    (BROWSER, "crates/train/src/checkpoint/base.rs", "a browser has no threads for a digest"),
    (BROWSER, "crates/model/src/gpu.rs", "leaves out the module of functions that block"),
    (BROWSER, "crates/train/src/host.rs", "a browser has no threads"),
    (BROWSER, "crates/web/src/lib.rs", "the crate is for browsers alone"),
    (BROWSER, "crates/train/src/lib.rs", "leaves out functions that block, and those that take paths"),
    ("pollster::", "crates/kernels/src/platform/native.rs", "the one place that blocks on a future"),
];

/// The condition by which code asks whether it is compiled for a browser.
const BROWSER: &str = "target_arch = \"wasm32\"";

/// Words that must not occur in a folder's code: (folder, word, reason).
const NEVER: &[(&str, &str, &str)] = &[
    ("crates/gguf/", "wgpu", "gguf must not depend on a GPU"),
    ("crates/cpu-ref/src/", "wgpu", "oracles must not depend on a GPU"),
    ("crates/cpu-ref/src/", "thread", "oracles have no threads"),
    ("crates/cpu-ref/src/", "rayon", "oracles have no threads"),
    ("crates/cpu-ref/src/", "unsafe", "oracles have no unsafe code"),
    ("crates/kernels/src/", "fs", "kernels never open a file"),
    ("crates/kernels/src/", "File::open", "kernels never open a file"),
    ("crates/model/", "wgpu", "only kernels name wgpu"),
    ("crates/model/src/", "create_buffer", "models record operations"),
    ("crates/model/src/", "create_bind_group", "models record operations"),
    ("crates/model/src/", "create_compute_pipeline", "models record operations"),
    ("crates/train/", "wgpu", "only kernels name wgpu"),
    ("crates/train/src/", "wgsl", "train holds no WGSL"),
    ("crates/cli/", "wgpu", "only kernels name wgpu"),
    ("crates/gguf/src/", "anyhow", "anyhow is for cli and xtask"),
    ("crates/cpu-ref/src/", "anyhow", "anyhow is for cli and xtask"),
    ("crates/kernels/src/", "anyhow", "anyhow is for cli and xtask"),
    ("crates/model/src/", "anyhow", "anyhow is for cli and xtask"),
    ("crates/train/src/", "anyhow", "anyhow is for cli and xtask"),
];

/// Marks of unfinished work. They are written in two parts, so that this file does not contain
/// them.
const MARKS: [&str; 5] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("db", "g!"), concat!("#[ign", "ore")];

/// Folders that exist only on one machine.
const MACHINE: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Runs every rule and prints the findings. Returns true if there are none.
pub fn run() -> anyhow::Result<bool> {
    let files = files()?;
    let mut found = vec![];
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?))) {
        head_and_length(path, text, &mut found);
        functions(path, text, &mut found);
        words(path, text, &mut found);
    }
    unsafe_code(&files, &mut found);
    only(&files, &mut found);
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?))) {
        wrapping(path, text, &mut found);
    }
    exceptions(&files, &mut found);
    dependencies(&files, &mut found);
    stems(&files, &mut found);
    markdown(&files, &mut found);
    let imports = imports(&files, &mut found);
    let public = public::public(&files, &mut found);
    messages::messages(&files, &mut found);
    flags::flags(&files, &mut found);
    pieces::pieces(&files, &mut found);
    declarations::check(&files, &mut found);
    heads::check(&files, &mut found);
    prose::prose(&files, &mut found);
    ci::ci(&files, &mut found);
    cards::cards(&files, &mut found);
    for finding in &found {
        eprintln!("{finding}");
    }
    println!("{imports}\n{public}");
    println!("{} files, {} findings", files.len(), found.len());
    Ok(found.is_empty())
}

/// Checks how the files of every crate import each other.
fn imports(files: &Files, found: &mut Vec<String>) -> String {
    found.extend(circles::uncounted(files.keys().map(String::as_str)));
    let texts = || files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)));
    let line = |krate: &circles::Counted| {
        let sources = texts().filter_map(|(path, text)| Some((path.strip_prefix(krate.src)?, text)));
        circles::circles(krate, &sources.filter(|(path, _)| path.ends_with(".rs")).collect(), found)
    };
    circles::CRATES.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Finds sums and products of the libraries that become 64 bits wide only after they are computed.
/// In a browser they have 32 bits before, and the bytes of weights and states do not fit into them.
fn wrapping(path: &str, text: &str, found: &mut Vec<String>) {
    let libraries = ["gguf", "cpu-ref", "kernels", "model", "train"].map(|name| format!("crates/{name}/src/"));
    if !path.ends_with(".rs") || !libraries.iter().any(|folder| path.starts_with(folder)) {
        return;
    }
    for (n, line) in (1..).zip(text.split("#[cfg(test)]").next().unwrap_or_default().lines()) {
        let code = line.split("//").next().unwrap_or_default();
        for (end, _) in code.match_indices(") as u64") {
            let mut depth = 0;
            let start = code[..=end].char_indices().rev().find(|(_, c)| {
                depth += i32::from(*c == ')') - i32::from(*c == '(');
                depth == 0
            });
            let Some((start, _)) = start else { continue };
            let (before, inside) = (code[..start].chars().next_back(), &code[start + 1..end]);
            let called = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '>');
            if !called && [" * ", " + "].iter().any(|sign| inside.contains(sign)) && !inside.contains("u64") {
                found.push(format!("{path}:{n}: ({inside}) may wrap before it is a u64; convert its parts"));
            }
        }
    }
}

/// Finds words of [`ONLY`] in other files of the libraries, and files that no longer need theirs.
fn only(files: &Files, found: &mut Vec<String>) {
    let mut words: Vec<&str> = ONLY.iter().map(|(word, ..)| *word).collect();
    words.dedup();
    for word in words {
        let may: Vec<&str> = ONLY.iter().filter(|(of, ..)| *of == word).map(|(_, path, _)| *path).collect();
        let source = |path: &str| path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
        for (path, text) in files.iter().filter(|(path, _)| source(path)) {
            let shipped = text.as_deref().unwrap_or_default().split("#[cfg(test)]").next().unwrap_or_default();
            match (shipped.contains(word), may.contains(&path.as_str())) {
                (true, false) => found.push(format!("{path}: {word:?}, which only {} may contain", may.join(", "))),
                (false, true) => found.push(format!("{path}: no longer contains {word:?}; take it off the list")),
                _ => {}
            }
        }
    }
}

fn listed(item: &str) -> bool {
    LONG.iter().any(|(long, _)| *long == item)
}

fn head_and_length(path: &str, text: &str, found: &mut Vec<String>) {
    let (limit, head) = match path.rsplit('.').next() {
        Some("rs") => (MAX_RUST, "//!"),
        Some("wgsl") => (MAX_WGSL, "// "),
        _ => return,
    };
    if !text.starts_with(head) {
        found.push(format!("{path}: does not start with {head:?}"));
    }
    // Lines that hold only an excuse are not counted.
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//~")).count();
    if lines > limit && !listed(path) {
        found.push(format!("{path}: {lines} lines, at most {limit}"));
    }
}

/// Finds the end of a function by indentation: rustfmt indents the closing brace like the first
/// line.
fn functions(path: &str, text: &str, found: &mut Vec<String>) {
    if !path.ends_with(".rs") {
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    for (n, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some((before, after)) = code.split_once("fn ") else { continue };
        let modifiers = before
            .split_whitespace()
            .all(|w| ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe"].contains(&w));
        if !modifiers || line.ends_with(';') {
            continue;
        }
        let close = format!("{}}}", &line[..line.len() - code.len()]);
        let length = lines[n..].iter().position(|line| *line == close).map_or(0, |end| end + 1);
        let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let alone = line.trim_end().ends_with('}');
        if !alone && length > MAX_FUNCTION && !listed(&format!("{path} {name}")) {
            found.push(format!("{path}:{}: {name} has {length} lines, at most {MAX_FUNCTION}", n + 1));
        }
    }
}

/// True if the line contains the word between non-word characters.
fn says(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word)
        .any(|(at, _)| !part(line[..at].chars().next_back()) && !part(line[at + word.len()..].chars().next()))
}

fn words(path: &str, text: &str, found: &mut Vec<String>) {
    let code_file = ["rs", "wgsl", "toml", "py"].iter().any(|end| path.ends_with(&format!(".{end}")));
    for (n, line) in (1..).zip(text.lines()) {
        for mark in MARKS.iter().filter(|mark| code_file && line.contains(**mark)) {
            found.push(format!("{path}:{n}: {mark}"));
        }
        for folder in MACHINE.iter().filter(|folder| line.contains(**folder)) {
            found.push(format!("{path}:{n}: {folder} exists only on one machine"));
        }
        if !path.ends_with(".rs") {
            continue;
        }
        let code = line.split("//").next().unwrap_or_default();
        for (folder, word, why) in NEVER {
            if path.starts_with(folder) && says(code, word) {
                found.push(format!("{path}:{n}: {word}: {why}"));
            }
        }
    }
}

/// A crate with unsafe code must explain it in the head of its first file. A test or an example is
/// a separate crate.
fn unsafe_code(files: &Files, found: &mut Vec<String>) {
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path.strip_prefix("crates/")?, text.as_deref()?)))
    {
        let unsafe_code = path.ends_with(".rs")
            && text.lines().any(|line| says(line.split("//").next().unwrap_or_default(), "unsafe"));
        let krate = path.split('/').next().unwrap_or_default();
        let heads =
            ["lib", "main"].map(|file| files.get(&format!("crates/{krate}/src/{file}.rs")).and_then(Option::as_deref));
        let said =
            |text: &str| text.lines().take_while(|line| line.starts_with("//!")).any(|line| line.contains("nsafe"));
        let own = if path.contains("/src/") { None } else { Some(text) };
        if unsafe_code && !heads.into_iter().chain([own]).flatten().any(said) {
            found.push(format!("crates/{path}: unsafe code, but the head of its crate does not explain it"));
        }
    }
}

/// Finds listed exceptions that are no longer exceptions.
fn exceptions(files: &Files, found: &mut Vec<String>) {
    for (item, why) in LONG {
        let path = item.split(' ').next().unwrap_or_default();
        let lines = files.get(path).and_then(Option::as_deref).map_or(0, |text| text.lines().count());
        let limit = if path.ends_with(".wgsl") { MAX_WGSL } else { MAX_RUST };
        if why.is_empty() || (!item.contains(' ') && lines <= limit) {
            found.push(format!("{item}: in the list of exceptions, but not needed there or without a reason"));
        }
    }
}

/// The names in a manifest's dependency tables, development ones included.
fn named(manifest: &str) -> Vec<&str> {
    let mut inside = false;
    let mut names = vec![];
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line.trim_end_matches(']').ends_with("dependencies");
        } else if let Some(name) = line.split(['.', '=', ' ']).next().filter(|name| inside && !name.is_empty()) {
            names.push(name.trim_matches('"'));
        }
    }
    names
}

fn dependencies(files: &Files, found: &mut Vec<String>) {
    for (n, krate) in ORDER.iter().enumerate() {
        let path = format!("crates/{krate}/Cargo.toml");
        let Some(manifest) = files.get(&path).and_then(Option::as_deref) else {
            continue;
        };
        for name in named(manifest) {
            // A crate may name itself, to enable a feature for its own tests.
            if ORDER[n + 1..].contains(&name) {
                found.push(format!("{path}: {krate} may not use {name}; the order is {}", ORDER.join(" <- ")));
            }
            let reserved = match name {
                "wgpu" => *krate == "kernels",
                "anyhow" => *krate == "cli",
                "cli" => false,
                "rayon" => !["cpu-ref"].contains(krate),
                _ => true,
            };
            if !reserved {
                found.push(format!("{path}: {krate} must not depend on {name}"));
            }
        }
    }
}

/// The family whose folder of kernels has this file.
fn family_of(path: &str) -> Option<&'static str> {
    let (folder, _) = path.strip_prefix("crates/kernels/src/")?.split_once('/')?;
    FAMILIES.into_iter().find(|family| *family == folder)
}

/// The files of kernels as (family, stem). Adds a finding for every shader in a wrong folder.
fn shaders<'a>(files: &'a Files, found: &mut Vec<String>) -> Vec<(&'a str, &'a str)> {
    let mut all: Vec<(&str, &str)> = vec![];
    for (path, inside) in
        files.keys().filter_map(|path| Some((path, path.strip_prefix("shaders/")?.strip_suffix(".wgsl")?)))
    {
        match inside.split('/').collect::<Vec<_>>()[..] {
            [family, stem] if FAMILIES.contains(&family) => {
                if let Some((other, _)) = all.iter().find(|(_, known)| *known == stem) {
                    found.push(format!("{path}: shaders/{other}/ also has a {stem}.wgsl"));
                }
                all.push((family, stem));
            }
            [family, "pieces", _] if FAMILIES.contains(&family) => {}
            ["shared" | "quant" | "kv", ..] => {}
            _ => found.push(format!(
                "{path}: neither in the folder of a family ({}) nor in a folder of pieces",
                FAMILIES.join(", ")
            )),
        }
    }
    all
}

/// All files of an operation have the same stem: the shader, the file that declares its kernel, and
/// the oracle that the declaration names.
fn stems(files: &Files, found: &mut Vec<String>) {
    let declares =
        |path: &str, text: &str| family_of(path).is_some() && path.ends_with(".rs") && text.contains("\nkernel! {");
    let stem_of = |path: &str| path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs").to_string();
    let texts = files.iter().filter_map(|(path, text)| Some((path, text.as_deref()?)));
    let declared: BTreeMap<_, _> =
        texts.filter(|(path, text)| declares(path, text)).map(|(path, text)| (stem_of(path), (path, text))).collect();
    let shaders = shaders(files, found);
    for (family, stem) in &shaders {
        let none = NO_OPERATION.iter().any(|(name, _)| name == stem);
        if none == declared.contains_key(*stem) {
            found.push(format!("shaders/{family}/{stem}.wgsl: no {stem}.rs in crates/kernels/src/{family}/"));
        }
    }
    let exists = |stem: &str| shaders.iter().any(|(_, known)| *known == stem);
    for (stem, why) in NO_OPERATION.iter().filter(|(stem, why)| why.is_empty() || !exists(stem)) {
        found.push(format!(
            "{stem}.wgsl: in the list of shaders without an operation, but not needed there or without a reason ({why})"
        ));
    }
    for (stem, (path, text)) in declared {
        if !exists(&stem) {
            found.push(format!("{path}: no {stem}.wgsl in the folder of a family"));
        }
        let oracles: Vec<_> = text.lines().filter_map(|line| line.trim().strip_prefix("cpu: cpu_ref::")).collect();
        // A kernel that reuses another kernel's params and bindings also has its oracle.
        if oracles.is_empty() && !text.contains("\n    like: ") {
            found.push(format!("{path}: declares no kernel with an oracle"));
        }
        for oracle in oracles.iter().map(|rest| rest.trim_end_matches(',')) {
            let of_family = |family: &str| files.contains_key(&format!("crates/cpu-ref/src/{family}/{oracle}.rs"));
            if !FAMILIES.iter().any(|family| of_family(family)) {
                found.push(format!("{path}: no {oracle}.rs in the folder of a family in crates/cpu-ref/src"));
            }
        }
    }
}

fn markdown(files: &Files, found: &mut Vec<String>) {
    for path in files.keys().filter(|path| !path.contains('/') && path.to_lowercase().ends_with(".md")) {
        if !["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].contains(&path.as_str()) {
            found.push(format!("{path}: root Markdown is README, ARCHITECTURE and CHANGELOG"));
        }
    }
}
