//! The table of known models, `models.json`: models that this version runs, with a short name, the
//! file's address, length and SHA-256, and the memory that it needs.

use serde::Deserialize;
use std::sync::LazyLock;

/// Names below this similarity (Jaro-Winkler) are not near.
const NEAR: f64 = 0.8;

static MODELS: LazyLock<Vec<Known>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../models.json")).expect("a test reads the table"));

/// A known model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The short name that every command takes.
    pub name: String,
    /// The name on the hub, with the quantization: `hf:OWNER/REPO:QUANT`.
    pub address: String,
    /// The repository of the original weights.
    #[cfg_attr(not(feature = "hub"), allow(dead_code, reason = "only errors of the hub name it"))]
    pub original: String,
    /// Names of the model in Ollama's library.
    pub ollama: Vec<String>,
    /// The length of the file.
    pub bytes: u64,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The memory of a session with 4,096 tokens on the CPU.
    pub memory_4096_bytes: u64,
    /// The licence of the weights.
    pub licence: String,
}

/// All known models.
pub fn all() -> &'static [Known] {
    &MODELS
}

/// The model of this short name. Upper and lower case may differ.
pub fn find(name: &str) -> Option<&'static Known> {
    all().iter().find(|known| known.name.eq_ignore_ascii_case(name))
}

/// The model with this name in Ollama's library, `NAME:TAG`.
pub fn of_ollama(name: &str) -> Option<&'static Known> {
    all().iter().find(|known| known.ollama.iter().any(|ollama| ollama.eq_ignore_ascii_case(name)))
}

/// The three names most similar to `wanted` that are similar at all, most similar first.
pub fn nearest(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names = near(wanted, names);
    names.truncate(3);
    names
}

/// The names that are similar to `wanted`, most similar first.
pub fn near(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let likeness = |name: &String| strsim::jaro_winkler(&name.to_lowercase(), &wanted);
    let mut near: Vec<(f64, String)> = names.map(|name| (likeness(&name), name)).collect();
    near.retain(|(likeness, _)| *likeness >= NEAR);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.dedup();
    near.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Name;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_sound_and_no_name_stands_twice() {
        let mut names = BTreeSet::new();
        for known in all() {
            let Known { name, address, original, ollama, bytes, sha256, memory_4096_bytes, licence } = known;
            let parsed = Name::parse(address).unwrap().unwrap();
            assert_eq!(&parsed.to_string(), address, "the address is spelled as commands print it");
            assert!(sha256.len() == 64 && sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{name}");
            assert!(memory_4096_bytes > bytes && *bytes > 0 && !licence.is_empty(), "{name}");
            assert!(original.split('/').count() == 2 && name.to_lowercase() == *name, "{name}");
            for name in ollama.iter().chain([name]) {
                assert!(names.insert(name.clone()), "{name} stands twice");
            }
        }
        assert!(all().len() >= 3);
    }

    #[test]
    fn names_are_found_in_any_case_and_near_ones_by_likeness() {
        assert_eq!(find("Qwen3-8B").unwrap().name, "qwen3-8b");
        assert_eq!(of_ollama("qwen3:8b").unwrap().name, "qwen3-8b");
        assert!(find("qwen3").is_none());
        let names = || all().iter().map(|known| known.name.clone());
        assert_eq!(near("qwen3-8", names())[0], "qwen3-8b");
        assert!(near("zzz", names()).is_empty());
    }

    #[test]
    fn the_readme_has_the_rows_of_the_table() {
        let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
        let gb = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
        let rows: Vec<&str> = readme.lines().filter(|line| line.contains("| `weft run ")).collect();
        for known in all() {
            let row = format!(
                "| `weft run {}` | {} | {} | {} |",
                known.name,
                gb(known.bytes),
                gb(known.memory_4096_bytes),
                known.licence
            );
            assert!(rows.contains(&row.as_str()), "README.md lacks the row {row}");
        }
        assert_eq!(rows.len(), all().len(), "README.md has a row that models.json lacks");
    }
}
