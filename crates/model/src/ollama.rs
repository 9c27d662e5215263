//! Models that Ollama has pulled: from a name such as `gemma4:e2b` to the GGUF file and the
//! settings of its Modelfile.
//!
//! A store is a folder with `manifests/HOST/USER/NAME/TAG` and `blobs/sha256-HEX`. A manifest is
//! JSON that lists layers by media type and digest; the blobs are the layers. The store belongs to
//! another program, and its content may be damaged or malicious. So every character of a name or
//! digest is checked before it becomes part of a path, and every read has a limit. A store need not
//! be in the file system: any [`gguf::Directory`] can be one.

mod entry;
mod error;
mod manifest;
mod name;
mod params;
mod store;
mod template;
mod template_words;

pub use entry::{Blob, Entry};
pub use error::OllamaError;
pub use manifest::{Digest, Layer, Manifest, fuzz};
pub use name::Name;
pub use params::Params;
pub use store::{Listed, Stores};
pub use template::jinja;
