//! `tidy --fields`: a new field of [`Attend`](kernels::ops::Attend) fails to compile wherever
//! attention is computed.

use super::Files;
use crate::packages;
use anyhow::{Context as _, ensure};
use kernels::testing::attention::ladder::LADDER;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The folder of attention, and the file of it that declares the type.
const FOLDER: &str = "crates/kernels/src/attention/";
const DECLARED: &str = "crates/kernels/src/attention/attention.rs";
const HEAD: &str = "pub struct Attend {\n";
/// The line that is added to the type.
const PLANTED: &str = "    pub planted: u32,\n";

/// The compiler's codes for a pattern without the field, and for a value without it.
const PATTERN: &str = "E0027";
const VALUE: &str = "E0063";

/// The places beside the rungs: file and function.
const PLACES: [(&str, &str); 10] = [
    // The oracles of attention and of its derivatives.
    ("attention", "by"),
    ("attention_lse", "spec"),
    // The kernels of derivatives.
    ("attention_lse", "lower"),
    ("attention_lse_flash", "lower"),
    ("attention_backward_q", "lower"),
    ("attention_backward_q_flash", "lower"),
    ("attention_backward_kv", "lower"),
    ("attention_backward_kv_flash", "lower"),
    // The domain of the kernels in tiles of 32 queries.
    ("tile32", "variant"),
    // The wrong parameters.
    ("attention_case", "wrong"),
];

/// Adds a field in a copy of the workspace, and reports the places that compile with it. Returns
/// true if there are none.
pub fn run() -> anyhow::Result<bool> {
    let files = super::files()?;
    let folder = packages::empty_folder("fields")?;
    copy(&files, &folder)?;
    let mut cargo = packages::cargo(&packages::target("fields"));
    cargo.args(["check", "--quiet", "--locked", "-p", "kernels", "--features", "testing", "--message-format", "json"]);
    let output = cargo.current_dir(&folder).output().context("cargo check")?;
    let named = named(&String::from_utf8_lossy(&output.stdout), &files)?;
    ensure!(
        !named.is_empty(),
        "cargo check in {} names no place:\n{}",
        folder.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    let rungs: Vec<&str> = LADDER.iter().map(|rung| rung.kernel.name).collect();
    let missing = missing(&named, &rungs);
    for place in &missing {
        eprintln!("{FOLDER}{place}: a new field of Attend compiles there; destructure it without `..`");
    }
    let all = rungs.len() + PLACES.len();
    println!("{} of {all} places need an answer to a new field of Attend", all - missing.len());
    Ok(missing.is_empty())
}

/// Writes the files to a folder, with the field.
fn copy(files: &Files, folder: &Path) -> anyhow::Result<()> {
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path, text.as_deref()?))) {
        let to = folder.join(path);
        fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        let text =
            if path == DECLARED { text.replacen(HEAD, &format!("{HEAD}{PLANTED}"), 1) } else { text.to_string() };
        ensure!(path != DECLARED || text.contains(PLANTED), "{path}: no {HEAD:?}");
        fs::write(&to, text).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

/// The places of which the compiler says that their pattern lacks the field: file and function.
///
/// Errors for values that lack the field are expected, too. Any other error might hide a pattern
/// that lacks it.
fn named(messages: &str, files: &Files) -> anyhow::Result<BTreeSet<(String, String)>> {
    let mut named = BTreeSet::new();
    for line in messages.lines() {
        let line: Value = serde_json::from_str(line).context("a message of cargo")?;
        let message = &line["message"];
        let Some(code) = message["code"]["code"].as_str().filter(|_| message["level"] == "error") else { continue };
        let told = message["rendered"].as_str().unwrap_or_default();
        ensure!(told.contains("`planted`") && [PATTERN, VALUE].contains(&code), "{told}");
        let spans = message["spans"].as_array().into_iter().flatten().filter(|_| code == PATTERN);
        for span in spans.filter(|span| span["is_primary"] == true) {
            let (path, line) = (span["file_name"].as_str().unwrap_or_default(), span["line_start"].as_u64());
            // The declaration has one line more in the copy.
            let line = line.unwrap_or_default() as usize - usize::from(path == DECLARED);
            let text = files.get(path).and_then(Option::as_deref).unwrap_or_default();
            let file = path.strip_prefix(FOLDER).unwrap_or(path).trim_end_matches(".rs");
            named.insert((file.to_string(), function(text, line).to_string()));
        }
    }
    Ok(named)
}

/// The name of the function that contains a line.
fn function(text: &str, line: usize) -> &str {
    let above: Vec<&str> = text.lines().take(line).collect();
    let name = above
        .iter()
        .rev()
        .filter(|line| !line.trim_start().starts_with("//"))
        .find_map(|line| line.split_once("fn ")?.1.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    name.unwrap_or_default()
}

/// The places that are not named. A rung may have its pattern in any function of its file that is
/// no other place.
fn missing(named: &BTreeSet<(String, String)>, rungs: &[&str]) -> Vec<String> {
    let is = |(file, function): &(String, String), place: &(&str, &str)| (file.as_str(), function.as_str()) == *place;
    let others: Vec<_> = named.iter().filter(|at| !PLACES.iter().any(|place| is(at, place))).collect();
    let rungs = rungs.iter().filter(|rung| !others.iter().any(|(file, _)| file == **rung));
    let places = PLACES.iter().filter(|place| !named.iter().any(|at| is(at, place)));
    rungs.map(|rung| format!("{rung}.rs")).chain(places.map(|(file, name)| format!("{file}.rs: {name}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = "fn by() {\n    let Attend { mask } = a;\n}\n\n/// No fn at all.\npub(super) fn take(a: u32) {\n    b();\n    let Attend { mask } = a;\n}\n";

    fn error(code: &str, line: u32) -> String {
        let span = json!({ "file_name": DECLARED, "line_start": line, "is_primary": true });
        let message =
            json!({ "code": { "code": code }, "level": "error", "rendered": "no `planted`", "spans": [span] });
        json!({ "reason": "compiler-message", "message": message }).to_string()
    }

    #[test]
    fn errors_name_the_functions_that_lack_the_field() {
        let files = Files::from([(DECLARED.to_string(), Some(TEXT.to_string()))]);
        let of = |messages: &[String]| named(&messages.join("\n"), &files);
        let at = |function: &str| ("attention".to_string(), function.to_string());
        let found = of(&[error(PATTERN, 3), error(PATTERN, 9), error(VALUE, 3)]).unwrap();
        assert_eq!(found, BTreeSet::from([at("by"), at("take")]));
        assert!(of(&[error("E0425", 3)]).is_err(), "another error may hide places");
        assert!(of(&[json!({ "reason": "build-finished", "success": false }).to_string()]).unwrap().is_empty());
    }

    #[test]
    fn rungs_and_places_that_are_not_named_are_missing() {
        let at = |file: &str, function: &str| (file.to_string(), function.to_string());
        let mut named: BTreeSet<_> = PLACES.iter().map(|(file, function)| at(file, function)).collect();
        assert_eq!(missing(&named, &["attention", "attention_split"]), ["attention.rs", "attention_split.rs"]);
        named.extend([at("attention", "take"), at("attention_split", "dispatch")]);
        assert!(missing(&named, &["attention", "attention_split"]).is_empty());
        named.remove(&at("tile32", "variant"));
        assert_eq!(missing(&named, &["attention"]), ["tile32.rs: variant"]);
    }
}
