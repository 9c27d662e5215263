//! The GGUF container.
