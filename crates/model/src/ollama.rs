//! Models that Ollama has pulled: from a name such as `gemma4:e2b` to the GGUF file, with what its Modelfile says.
//!
//! A store is a folder with `manifests/HOST/USER/NAME/TAG`, JSON that lists layers by media type and digest, and
//! `blobs/sha256-HEX`, the layers. It belongs to another program and may be damaged or made up: names and digests become paths
//! only after a check of every character, and nothing is read beyond a limit.

mod entry;
mod error;
mod manifest;
mod name;
mod store;
mod template;
mod template_words;

pub use entry::{Blob, Entry, Params};
pub use error::OllamaError;
pub use manifest::{Digest, Layer, Manifest, fuzz};
pub use name::Name;
pub use store::{Listed, Stores};
pub use template::jinja;
