//! The files of the workspace, as the rules read them.

use crate::workspace::root;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::process::Command;

/// The workspace's files by path, with their content if it is text.
pub type Files = BTreeMap<String, Option<String>>;

/// The files that git tracks, and the new files that it does not ignore.
pub fn files() -> anyhow::Result<Files> {
    let listed = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .context("git")?;
    anyhow::ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim());
    let paths = String::from_utf8(listed.stdout).context("file names")?;
    let paths = paths.split('\0').filter(|path| root().join(path).is_file());
    Ok(paths.map(|path| (path.to_string(), std::fs::read_to_string(root().join(path)).ok())).collect())
}
