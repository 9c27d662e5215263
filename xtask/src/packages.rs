//! `packages`: every crate alone, as somebody who depends on its package has it.

use crate::workspace::root;
use anyhow::{Context as _, Result, ensure};
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The crates with a package, each after the crates that it uses.
const CRATES: [&str; 6] = ["gguf", "cpu-ref", "kernels", "model", "train", "weft"];

/// The members of the workspace without a package.
const UNPUBLISHED: [&str; 3] = ["cli", "web", "xtask"];

/// The features that an example needs: (crate, number of the example, feature).
const FEATURES: [(&str, usize, &str); 3] = [("kernels", 3, "testing"), ("model", 1, "gpu"), ("model", 3, "gpu")];

/// The model that the examples open, whatever name they give it.
const MODEL: &str = "crates/cli/assets/default.gguf";

/// The file of examples that one of them trains on.
const EXAMPLES: &str = "facts.jsonl";

/// Packages the crates, and builds and runs the examples of each README in a project that depends
/// on the unpacked package and on nothing else.
pub fn run() -> Result<()> {
    let (target, folder) = (target("packages"), empty_folder("packages")?);
    package(&target)?;
    let version = version()?;
    for name in CRATES {
        let archive = target.join(format!("package/{name}-{version}.crate"));
        // Without the times of the archive, which are the same for each version of a file.
        done(Command::new("tar").arg("-xzmf").arg(archive).current_dir(&folder))?;
        fs::rename(folder.join(format!("{name}-{version}")), folder.join(name))?;
    }
    for (n, name) in CRATES.into_iter().enumerate() {
        let page =
            fs::read_to_string(folder.join(name).join("README.md")).with_context(|| format!("the README of {name}"))?;
        let examples = examples(&page);
        ensure!(!examples.is_empty(), "the README of {name} has no example in Rust");
        for (number, example) in (1..).zip(&examples) {
            let began = Instant::now();
            let features: Vec<&str> =
                FEATURES.iter().filter(|of| (of.0, of.1) == (name, number)).map(|of| of.2).collect();
            let printed = outside(&folder, &target, name, &features, &CRATES[..n], example)?;
            ensure!(!printed.is_empty(), "example {number} in the README of {name} prints nothing");
            println!("{name}: example {number} of {} runs ({:.1} s)", examples.len(), began.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// The folder of what a command builds.
pub fn target(command: &str) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join(command)
}

/// An empty folder outside the workspace. A command in a checkout always takes the same folder, so
/// that cargo can reuse what it built.
pub fn empty_folder(command: &str) -> Result<PathBuf> {
    let mut checkout = DefaultHasher::new();
    root().hash(&mut checkout);
    let folder = env::temp_dir().join(format!("weft-{command}-{:x}", checkout.finish()));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("clearing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes the packages to `target`/package.
fn package(target: &Path) -> Result<()> {
    let mut cargo = cargo(target);
    cargo.args(["package", "--quiet", "--workspace", "--no-verify", "--allow-dirty"]).current_dir(root());
    for name in UNPUBLISHED {
        cargo.args(["--exclude", name]);
    }
    done(&mut cargo).map(|_| ())
}

/// Cargo without network: the workspace has been built, so its dependencies are on this machine.
pub fn cargo(target: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true");
    // Nothing here is debugged or built again from parts.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    cargo
}

/// The version of all packages, as the workspace's manifest has it.
pub fn version() -> Result<String> {
    let manifest = crate::workspace::read("Cargo.toml")?;
    let package = manifest.split("[workspace.package]").nth(1).context("Cargo.toml: no [workspace.package]")?;
    let line = package.lines().find_map(|line| line.strip_prefix("version = ")).context("Cargo.toml: no version")?;
    Ok(line.trim_matches('"').to_string())
}

/// The programs in Rust on a page, in order.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split("\n```rust").skip(1).filter_map(|block| block.split_once('\n'));
    blocks.map(|(_, code)| code.split("```").next().unwrap_or_default().to_string()).collect()
}

/// Makes a project with one dependency, runs the example there, and returns what it printed.
fn outside(
    folder: &Path,
    target: &Path,
    name: &str,
    features: &[&str],
    below: &[&str],
    example: &str,
) -> Result<String> {
    let project = folder.join(format!("{name}-alone"));
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("Cargo.toml"), manifest(folder, name, features, below))?;
    // The versions that the workspace is tested with.
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock"))?;
    fs::write(project.join("src/main.rs"), example)?;
    for file in example.split('"').filter(|text| text.ends_with(".gguf")) {
        fs::copy(root().join(MODEL), project.join(file))?;
    }
    if example.contains(EXAMPLES) {
        // A share of the examples is for validation: more than one is needed.
        fs::write(
            project.join(EXAMPLES),
            "{\"prompt\": \"Where does Oda live?\", \"completion\": \"Oda lives in Kelm.\"}\n".repeat(2),
        )?;
    }
    done(cargo(target).args(["run", "--quiet"]).current_dir(&project))
        .with_context(|| format!("{name} alone, in {}", project.display()))
}

/// The manifest of the project. Without default features the crates below are the same in every
/// project, so each is built once.
fn manifest(folder: &Path, name: &str, features: &[&str], below: &[&str]) -> String {
    let at = |name: &str| folder.join(name);
    let mut text = format!("[package]\nname = \"{name}-alone\"\nedition = \"2024\"\n\n");
    text += &format!(
        "[dependencies]\n{name} = {{ path = {:?}, default-features = false, features = {features:?} }}\n\n[patch.crates-io]\n",
        at(name)
    );
    text.extend(below.iter().map(|name| format!("{name} = {{ path = {:?} }}\n", at(name))));
    // Models run on these two crates. Without optimisation an answer takes ten seconds.
    let slow = ["gguf", "cpu-ref"].iter().filter(|slow| **slow == name || below.contains(slow));
    text.extend(slow.map(|slow| format!("\n[profile.dev.package.{slow}]\nopt-level = 2\n")));
    text
}

/// The output of a command. The command must succeed.
fn done(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program adds to its Cargo.toml, and at which level oracles are fast enough there.
    #[test]
    fn every_page_has_the_lines_for_a_manifest() {
        for name in CRATES {
            let path = if name == "weft" { "README.md".to_string() } else { format!("crates/{name}/README.md") };
            let page = crate::workspace::read(&path).expect("a page");
            let block = page.split("```toml\n").nth(1).expect("lines for a manifest").split("```").next();
            let block = block.unwrap_or_default();
            assert!(block.starts_with(&format!("[dependencies]\n{name} = {{ git = ")), "{path}: {block}");
            assert!(block.contains("[profile.dev.package]\n") && block.contains("gguf.opt-level = 3\n"), "{path}");
            assert_eq!(block.contains("cpu-ref.opt-level = 3\n"), name != "gguf", "{path}");
        }
        let command = crate::workspace::read("crates/cli/README.md").expect("a page");
        assert!(command.contains("weft = { git = "), "crates/cli/README.md");
    }

    #[test]
    fn examples_are_the_blocks_of_rust() {
        let page = "# A\n\n```sh\nb\n```\n\n```rust,no_run\nfn main() {}\n```\n\n```rust\nfn main() { c() }\n```\n";
        assert_eq!(examples(page), ["fn main() {}\n", "fn main() { c() }\n"]);
    }
}
