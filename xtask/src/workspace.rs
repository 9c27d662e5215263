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

/// The families, in their order: a family may use those before it. Each has a folder of kernels and
/// a folder of shaders, whose pieces are in the subfolder `pieces`.
pub const FAMILIES: [&str; 7] = ["elementwise", "sampling", "norm", "matmul", "attention", "experts", "training"];
