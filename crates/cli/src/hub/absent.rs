//! In place of the hub in a build without the feature `hub`.

use super::name::Name;
use super::outcome::{Pulled, Removed};
use anyhow::{Result, anyhow};
use std::path::PathBuf;

/// A model in the cache.
#[derive(Clone, Debug)]
pub struct Cached {
    pub name: Name,
    pub parts: Vec<PathBuf>,
}

impl Cached {
    /// The file to open: the first part.
    pub fn file(mut self) -> PathBuf {
        self.parts.swap_remove(0)
    }

    pub fn verify(&self, _: &dyn Fn(u64, u64)) -> Result<()> {
        Ok(())
    }
}

fn lacks(name: &Name) -> anyhow::Error {
    anyhow!("{name}: this weft was built without the feature \"hub\"; a GGUF file from the hub runs by its path")
}

pub fn find(name: &Name) -> Result<Cached> {
    Err(lacks(name))
}

pub fn pull(name: &Name) -> Result<Pulled> {
    Err(lacks(name))
}

pub fn remove(name: &Name) -> Result<Removed> {
    Err(lacks(name))
}

pub fn cached(_: &Name) -> Option<Cached> {
    None
}

pub fn models() -> Vec<Cached> {
    vec![]
}
