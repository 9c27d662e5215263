//! `verify-shaders --browser`: gives every composed shader to the WGSL compiler of a browser.
//!
//! `xtask/browser/compile.mjs` drives the browser: modules in, as JSON on stdin, messages out.

use crate::workspace::root;
use crate::{compiled, files, npm};
use anyhow::{Context as _, ensure};
use kernels::testing::kernel::compose::Shader;
use kernels::testing::language;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The folder of the driver and of the npm package that it needs.
const DRIVER: &str = "xtask/browser";

/// Names of shaders that are printed below an error.
const SHOWN: usize = 3;

/// A shader with its text for browsers.
struct Module {
    shader: Shader,
    source: String,
}

/// One error message of the browser, and the shaders that have it.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    /// The place in the shader files, or in the composed text.
    at: String,
    /// The error, and the lines after it that explain it.
    message: String,
    shaders: Vec<String>,
}

/// Compiles every shader whose variant's name contains `kernel` and that has a file whose path
/// contains one of `parts`, and prints what the browser refuses. Returns true if it takes all of
/// them.
pub fn run(browser: &Path, kernel: &str, parts: &[String]) -> anyhow::Result<bool> {
    let begin = Instant::now();
    let texts = files::read(&files::all()?)?;
    let modules = modules(&texts, kernel, parts);
    ensure!(
        !modules.is_empty(),
        "no shader for browsers has {kernel:?} in its kernel's name and {parts:?} in the path of a file"
    );
    let verdict = ask(&program(browser)?, &modules)?;
    let refusals = refusals(&texts, &modules, &verdict)?;
    for Refusal { at, message, shaders } in &refusals {
        let (some, more) = (&shaders[..shaders.len().min(SHOWN)], if shaders.len() > SHOWN { ", .." } else { "" });
        println!("{at}: {message}\n    in {} shaders: {}{more}", shaders.len(), some.join(", "));
    }
    let refused: HashSet<_> = refusals.iter().flat_map(|refusal| &refusal.shaders).collect();
    let with = modules.iter().filter(|module| module.shader.subgroups).count();
    println!(
        "Chromium {} on {}: {} shaders without subgroups and {with} with them in {:.1} s: {} refused",
        verdict["browser"].as_str().unwrap_or("?"),
        verdict["adapter"].as_str().unwrap_or("?"),
        modules.len() - with,
        begin.elapsed().as_secs_f64(),
        refused.len(),
    );
    Ok(refused.is_empty())
}

/// Every shader that a browser can run, of these kernels and files.
fn modules(texts: &[(String, String)], kernel: &str, parts: &[String]) -> Vec<Module> {
    let wanted: Vec<_> = texts.iter().filter(|(path, _)| files::is_wanted(path, parts)).collect();
    let variants = language::variants().filter(|variant| variant.name.contains(kernel));
    let shaders = variants.flat_map(|variant| Shader::all(variant, &[0, 8, 32]));
    let shaders = shaders.chain(compiled::shaders(kernel));
    let modules = shaders.filter_map(|shader| shader.browser_source().map(|source| Module { shader, source }));
    let has = |Module { shader, source }: &Module| {
        wanted.iter().any(|(_, text)| !files::places(shader, source, text).is_empty())
    };
    modules.filter(|module| parts.is_empty() || has(module)).collect()
}

/// The absolute path of a browser that is named by a path, or by a name that `$PATH` has.
pub fn program(browser: &Path) -> anyhow::Result<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::split_paths(&folders)
        .filter(|_| browser.components().count() == 1)
        .map(|folder| folder.join(browser));
    let found = named.chain([browser.to_path_buf()]).find(|path| path.is_file());
    let missing = || {
        format!(
            "there is no browser {browser:?}: install the package `chromium`, or name a Chromium with --browser=PATH"
        )
    };
    std::path::absolute(found.with_context(missing)?).context("the current folder")
}

/// The driver's verdict on the modules.
fn ask(browser: &Path, modules: &[Module]) -> anyhow::Result<Value> {
    let folder = root().join(DRIVER);
    npm::install(&folder)?;
    let mut node = Command::new("node");
    node.arg("compile.mjs").current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut driver = node.spawn().map_err(|e| npm::missing(e, "node", "nodejs"))?;
    let sources: Vec<_> = modules.iter().map(|module| &module.source).collect();
    let request = json!({ "browser": browser, "modules": sources }).to_string();
    // A driver that ends early closes its stdin. What it says then on stderr is the error.
    let written = driver.stdin.take().context("the driver has no stdin")?.write_all(request.as_bytes());
    let done = driver.wait_with_output().context("waiting for the driver")?;
    ensure!(done.status.success(), "{DRIVER}/compile.mjs failed ({}); the lines above say why", done.status);
    written.context("giving the shaders to the driver")?;
    serde_json::from_slice(&done.stdout)
        .with_context(|| format!("{DRIVER}/compile.mjs: {}", String::from_utf8_lossy(&done.stdout)))
}

/// The errors of a verdict, by place and message.
fn refusals(texts: &[(String, String)], modules: &[Module], verdict: &Value) -> anyhow::Result<Vec<Refusal>> {
    let lists = verdict["messages"].as_array().context("the verdict has no messages")?;
    ensure!(lists.len() == modules.len(), "the verdict is about {} modules, not {}", lists.len(), modules.len());
    let mut found: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (module, list) in modules.iter().zip(lists) {
        for error in errors(texts, module, list).with_context(|| format!("the verdict on {}", module.shader.label()))? {
            found.entry(error).or_default().push(module.shader.label());
        }
    }
    Ok(found.into_iter().map(|((at, message), shaders)| Refusal { at, message, shaders }).collect())
}

/// The errors of one module: place and message.
fn errors(texts: &[(String, String)], module: &Module, list: &Value) -> anyhow::Result<Vec<(String, String)>> {
    let mut errors: Vec<(String, String)> = vec![];
    // Whether the last message that was no note is an error.
    let mut within = false;
    for message in list.as_array().context("no list of messages")? {
        let kind = message["type"].as_str().context("a message without a type")?;
        let text = message["message"].as_str().context("a message without a text")?;
        if kind != "info" {
            within = kind == "error";
        }
        if !within {
            continue;
        }
        let line = message["line"].as_u64().context("a message without a line")?;
        let at = match files::origin(texts, &module.shader, &module.source, line as usize) {
            Some((path, line)) => format!("{path}:{line}"),
            None => format!("line {line} of {}", module.shader.label()),
        };
        match errors.last_mut() {
            // A note explains the error before it.
            Some((_, error)) if kind == "info" => error.push_str(&format!("\n    {at}: {text}")),
            _ => errors.push((at, text.to_string())),
        }
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::{modules, program, refusals};
    use crate::files;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_verdict_becomes_one_refusal_for_each_place_and_message() {
        let texts = files::read(&files::all().unwrap()).unwrap();
        let modules = modules(&texts, "norm_rope", &["norm/norm_rope.wgsl".to_string()]);
        let labels: Vec<_> = modules.iter().map(|module| module.shader.label()).collect();
        assert_eq!(labels, ["norm_rope", "norm_rope +subgroups"]);
        let line =
            |wanted: &str, n: usize| 1 + modules[n].source.lines().position(|line| line.contains(wanted)).unwrap();
        let error = |n| json!({ "type": "error", "line": line("fn head_turns", n), "message": "mixed" });
        let note = json!({ "type": "info", "line": 9, "message": "because" });
        let warning = json!({ "type": "warning", "line": 1, "message": "odd" });
        let verdict = |of| json!({ "messages": of });
        let text = texts.iter().find(|(path, _)| path == "shaders/shared/head_turns.wgsl").unwrap().1.as_str();
        let at = format!(
            "shaders/shared/head_turns.wgsl:{}",
            1 + text.lines().position(|line| line.starts_with("fn ")).unwrap()
        );

        let found = refusals(&texts, &modules, &verdict(json!([[error(0)], [error(1)]]))).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].at.as_str(), found[0].message.as_str()), (at.as_str(), "mixed"));
        assert_eq!(found[0].shaders, labels);

        let found = refusals(&texts, &modules, &verdict(json!([[error(0), note, warning], [warning, note]]))).unwrap();
        assert_eq!(found.len(), 1, "warnings refuse nothing");
        assert_eq!(found[0].message, "mixed\n    shaders/norm/norm_rope.wgsl:9: because");
        assert_eq!(found[0].shaders, labels[..1]);

        assert!(refusals(&texts, &modules, &verdict(json!([[], []]))).unwrap().is_empty());
        let error = refusals(&texts, &modules, &verdict(json!([[]]))).unwrap_err();
        assert_eq!(error.to_string(), "the verdict is about 1 modules, not 2");
        assert!(refusals(&texts, &modules, &json!({})).is_err());
    }

    #[test]
    fn a_browser_gets_directives_for_subgroups_and_no_cooperative_matrices() {
        for super::Module { shader, source } in modules(&[], "", &[]) {
            let plain = shader.source();
            assert!(!shader.variant.kernel.cooperative(), "{}", shader.label());
            assert_eq!(source.starts_with("enable subgroups;"), shader.subgroups, "{}", shader.label());
            assert!(
                source.ends_with(&plain) && source.lines().count() == plain.lines().count(),
                "lines have the same numbers"
            );
        }
    }

    #[test]
    fn a_missing_browser_says_what_to_install() {
        let error = program(Path::new("no-such-browser")).unwrap_err().to_string();
        assert!(error.contains("`chromium`") && error.contains("--browser=PATH"), "{error}");
        assert!(program(Path::new("sh")).unwrap().is_absolute());
        assert_eq!(program(Path::new("/bin/sh")).unwrap(), Path::new("/bin/sh"));
    }
}
