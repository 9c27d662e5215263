//! Checks and recipes of the workspace.

fn main() {}
