//! The files of the workspace.

use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// The workspace's folder. The commands work there, independent of the current folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The text of a file of the workspace.
pub fn read(path: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| format!("reading {path}"))
}
