//! Models.

pub mod tokenizer;
