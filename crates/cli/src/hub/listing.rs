//! What the hub says of a repository: the commit of `main`, and its GGUF files.

use super::cache::{is_commit, is_sha256};
use super::choose::is_gguf;
use super::client::{ASKING, Client, Patience};
use super::name::{Name, is_path};
use crate::known;
use crate::progress::Bar;
use anyhow::{Result, anyhow};
use serde::Deserialize;

/// The largest number of files in a repository.
const MAX_FILES: usize = 20_000;

/// The files of a commit.
pub struct Listing {
    pub commit: String,
    pub files: Vec<Remote>,
}

/// A GGUF file on the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

#[derive(Deserialize)]
struct Model {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
    size: u64,
}

/// Asks the hub for the files of `main`.
pub fn listing(client: &Client, name: &Name, bar: &Bar) -> Result<Listing> {
    let address = client.address(&["api/models", &name.owner, &name.repo, "revision/main"]) + "?blobs=true";
    let mut patience = Patience::new(ASKING, &client.settings);
    let model = loop {
        match client.json(&address, name) {
            Ok(model) => break model,
            Err(failure) => patience.wait(failure, bar)?,
        }
    };
    checked(model, name)
}

/// The GGUF files of an answer, if nothing in it could lead out of the cache.
fn checked(model: Model, name: &Name) -> Result<Listing> {
    let repository = name.repository();
    if !is_commit(&model.sha) || model.siblings.len() > MAX_FILES {
        return Err(anyhow!("{repository}: the hub's answer has no commit, or more than {MAX_FILES} files"));
    }
    let mut files = vec![];
    for Sibling { rfilename: path, lfs } in model.siblings.into_iter().filter(|file| is_gguf(&file.rfilename)) {
        if !is_path(&path) {
            return Err(anyhow!("{repository}: the hub lists \"{}\", which is no safe file name", path.escape_debug()));
        }
        match lfs {
            Some(Lfs { sha256, size }) if is_sha256(&sha256) => files.push(Remote { path, bytes: size, sha256 }),
            _ => return Err(anyhow!("{repository}: the hub has no SHA-256 of {path}")),
        }
    }
    if files.is_empty() {
        return Err(anyhow!("{repository} has no GGUF files{}", counterpart(&repository)));
    }
    Ok(Listing { commit: model.sha, files })
}

/// Where the GGUF files of a repository with original weights are.
fn counterpart(repository: &str) -> String {
    let known = known::all().iter().find(|known| known.original.eq_ignore_ascii_case(repository));
    match known {
        Some(known) => format!("; {} ({}) has one", known.address, known.name),
        None => format!("; look for a repository with GGUF files, such as {repository}-GGUF"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(sha: &str, siblings: Value) -> Result<Listing> {
        let name = Name::parse("hf:Qwen/Qwen3-8B").unwrap().unwrap();
        checked(serde_json::from_value(json!({ "sha": sha, "siblings": siblings })).unwrap(), &name)
    }

    fn file(path: &str, sha256: &str) -> Value {
        json!({ "rfilename": path, "size": 3, "lfs": { "sha256": sha256, "size": 3, "pointerSize": 1 } })
    }

    #[test]
    fn gguf_files_are_taken_and_others_ignored() {
        let (commit, sha256) = ("a".repeat(40), "b".repeat(64));
        let others = json!([file("m.gguf", &sha256), { "rfilename": "../README.md" }]);
        let files = read(&commit, others).unwrap().files;
        assert_eq!(files, [Remote { path: "m.gguf".to_string(), bytes: 3, sha256 }]);
    }

    #[test]
    fn unsafe_answers_are_refused() {
        let (commit, sha256) = ("a".repeat(40), "b".repeat(64));
        let refused = |sha: &str, siblings| read(sha, siblings).err().map(|error| error.to_string()).unwrap();
        for path in ["../m.gguf", "/m.gguf", "a/../../m.gguf", "C:\\m.gguf", "a\u{1b}.gguf", "a//m.gguf"] {
            assert!(refused(&commit, json!([file(path, &sha256)])).contains("no safe file name"), "{path}");
        }
        assert!(refused("../../x", json!([file("m.gguf", &sha256)])).contains("no commit"));
        assert!(refused(&commit, json!([file("m.gguf", "../x")])).contains("no SHA-256 of m.gguf"));
        assert!(refused(&commit, json!([{ "rfilename": "m.gguf" }])).contains("no SHA-256"));
        let none = refused(&commit, json!([{ "rfilename": "model.safetensors" }]));
        assert!(none.contains("no GGUF files; hf:Qwen/Qwen3-8B-GGUF:Q4_K_M (qwen3-8b) has one"), "{none}");
    }
}
