//! Packages of npm, for what drives browsers and what builds pages.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// Installs the packages that the lock file of a folder of the workspace names, unless they are
/// there.
pub fn install(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    let packages = |file: &str| -> Option<Map<String, Value>> {
        let mut lock: Value = serde_json::from_slice(&std::fs::read(folder.join(file)).ok()?).ok()?;
        Some(std::mem::take(lock["packages"].as_object_mut()?))
    };
    let wanted = packages("package-lock.json").with_context(|| format!("{shown} has no package-lock.json"))?;
    let there = packages("node_modules/.package-lock.json").unwrap_or_default();
    if wanted
        .iter()
        .filter(|(path, package)| is_needed(path, package))
        .all(|(path, _)| there.get(path) == wanted.get(path))
    {
        return Ok(());
    }
    eprintln!("installing the packages of {shown}/package-lock.json with `npm ci`");
    run(folder, &["ci", "--no-audit", "--no-fund", "--loglevel=error"])
        .context("it needs a way to the npm registry once")
}

/// Whether a package of a lock file must be there: it is of the registry, and of every platform.
fn is_needed(path: &str, package: &Value) -> bool {
    path.starts_with("node_modules/") && package["link"] != true && package["optional"] != true
}

/// Runs npm in a folder, without its output on stdout.
pub fn run(folder: &Path, args: &[&str]) -> anyhow::Result<()> {
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    npm.args(args).current_dir(folder).stdout(Stdio::null());
    let status = npm.status().map_err(|error| missing(error, "npm", "npm"))?;
    ensure!(status.success(), "`npm {}` in {} failed ({status})", args.join(" "), folder.display());
    Ok(())
}

/// The error of a program that cannot be started.
pub fn missing(error: std::io::Error, program: &str, package: &str) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => {
            anyhow::anyhow!("there is no `{program}`, which this needs: install the package `{package}`")
        }
        _ => anyhow::Error::from(error).context(format!("starting {program}")),
    }
}

#[cfg(test)]
mod tests {
    use super::is_needed;
    use serde_json::json;

    #[test]
    fn links_and_packages_of_other_platforms_need_not_be_there() {
        assert!(is_needed("node_modules/vite", &json!({ "version": "8.0.0" })));
        assert!(!is_needed("node_modules/@x/linux-arm64", &json!({ "version": "1.0.0", "optional": true })));
        assert!(!is_needed("node_modules/@weft-llm/web", &json!({ "resolved": "js", "link": true })));
        assert!(!is_needed("js", &json!({ "version": "0.1.0" })));
        assert!(!is_needed("", &json!({})));
    }
}
