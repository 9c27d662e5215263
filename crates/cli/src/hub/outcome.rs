//! What was fetched, and what was removed.

use super::{Cached, Name};
use std::path::PathBuf;

/// A model that was fetched.
pub struct Pulled {
    /// The model in the cache.
    pub model: Cached,
    /// The encoder of images that came along.
    pub projector: Option<PathBuf>,
    /// The length of all files, and the bytes that came over the network.
    pub bytes: u64,
    pub fetched: u64,
    pub commit: String,
}

/// What was removed.
pub struct Removed {
    pub name: Name,
    /// The number of files, with their parts and encoders of images.
    pub files: usize,
    pub bytes: u64,
}
