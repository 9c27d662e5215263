//! Models on Hugging Face's hub: names such as `hf:Qwen/Qwen3-8B-GGUF:Q4_K_M`, downloads, and the
//! cache that all programs of the hub share.
//!
//! The hub, and what other programs left in the cache, may be damaged or malicious. Every part of a
//! name or path is checked before it becomes part of a path or an address, every answer has a
//! limit, and a file gets its name when its SHA-256 is right.

mod name;
mod outcome;

#[cfg(not(feature = "hub"))]
mod absent;
#[cfg(feature = "hub")]
mod cache;
#[cfg(feature = "hub")]
mod choose;
#[cfg(feature = "hub")]
mod client;
#[cfg(feature = "hub")]
mod download;
#[cfg(feature = "hub")]
mod listing;
#[cfg(feature = "hub")]
mod models;
#[cfg(feature = "hub")]
mod remove;
#[cfg(feature = "hub")]
mod settings;

#[cfg(not(feature = "hub"))]
pub use absent::{Cached, cached, find, models, pull, remove};
#[cfg(feature = "hub")]
pub use cache::Cached;
#[cfg(feature = "hub")]
pub use models::{cached, find, models, pull};
pub use name::Name;
pub use outcome::{Pulled, Removed};
#[cfg(feature = "hub")]
pub use remove::remove;
