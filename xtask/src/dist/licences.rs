//! The licences of the crates in the binary.

use super::output;
use crate::packages::target;
use crate::workspace::root;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// How files with the text of a licence begin.
const NAMES: [&str; 5] = ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE"];

/// Every crate in the binary with its licence, its source, and the texts that it ships.
pub fn notices(of: &str) -> Result<String> {
    let cargo = || crate::packages::cargo(&target("dist"));
    let tree = ["tree", "--locked", "-p", "cli", "-e", "normal", "--prefix", "none", "--format", "{p}", "--target", of];
    let listed = output(cargo().args(tree).current_dir(root()))?;
    // `name v1.2.3`, and the path of a crate of the workspace.
    let crates: BTreeSet<(&str, &str)> = listed
        .lines()
        .filter(|line| !line.contains('/'))
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or_default()))
        .collect();
    let described =
        described(cargo().args(["metadata", "--locked", "--format-version", "1", "--filter-platform", of]))?;
    let mut text = "Weft is built with these crates.\n".to_string();
    for (name, version) in crates {
        let package = described
            .get(&(name.to_string(), version.to_string()))
            .with_context(|| format!("cargo metadata lacks {name} {version}"))?;
        let of = |key: &str| package[key].as_str().unwrap_or("not stated").to_string();
        writeln!(text, "\n{name} {version}\nlicence: {}\nsource: {}", of("license"), of("repository"))?;
        let folder = Path::new(package["manifest_path"].as_str().unwrap_or_default()).parent();
        text.push_str(&texts(folder.context("a manifest without a folder")?)?);
    }
    Ok(text)
}

/// All packages by name and version.
fn described(metadata: &mut Command) -> Result<BTreeMap<(String, String), Value>> {
    let value: Value = serde_json::from_str(&output(metadata.current_dir(root()))?)?;
    let packages = value["packages"].as_array().context("cargo metadata has no packages")?;
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_string();
    Ok(packages.iter().map(|package| ((text(package, "name"), text(package, "version")), package.clone())).collect())
}

/// The files with licences in the folder of a crate.
fn texts(folder: &Path) -> Result<String> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    let mut all = String::new();
    for file in files {
        let name = file.file_name().to_string_lossy().to_uppercase();
        if NAMES.iter().any(|begin| name.starts_with(begin)) && file.path().is_file() {
            let text = std::fs::read(file.path()).with_context(|| file.path().display().to_string())?;
            write!(all, "\n{}\n", String::from_utf8_lossy(&text).trim_end())?;
        }
    }
    Ok(all)
}
