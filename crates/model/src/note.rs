//! Notes on a file that loads although it lacks a value or has an odd one: the assumptions made.

use crate::left_out::LeftOut;

/// An assumption that was made to load a file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Note {
    /// A byte-level tokenizer without the name of its pre-tokenizer.
    #[error(
        "tokenizer.ggml.pre is missing or names no rule; text is cut into words as Qwen2's \
         tokenizer does it"
    )]
    MissingPre,
    /// Tokens that end an answer, or open or close a turn, and that are not control tokens in the
    /// file.
    #[error(
        "tokenizer.ggml.token_type does not make control tokens of {}; they end answers or are parts \
         of turns, so they count as control tokens",
        listed(names, *count)
    )]
    TurnTypes {
        /// The names of the first of these tokens.
        names: Vec<String>,
        /// Number of these tokens.
        count: usize,
    },
    /// The vocabulary has no token for some bytes.
    #[error(
        "tokenizer.ggml.tokens has no token for {count} of the 256 bytes, the first of them \
         0x{first:02X}; text that needs one of them is refused"
    )]
    MissingBytes {
        /// Number of these bytes.
        count: usize,
        /// The lowest of them.
        first: u8,
    },
    /// Control or user-defined tokens that are too long to be searched for.
    #[error(
        "{count} control or user-defined tokens have names of more than {limit} bytes; the names \
         are not found in text"
    )]
    LongNames {
        /// Number of these tokens.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Settings of a model in Ollama's store that change its answers there, and that do not apply
    /// here.
    #[error("of Ollama's settings, Weft does not apply {}", unapplied.join(", "))]
    Ollama {
        /// The settings, in words.
        unapplied: Vec<String>,
    },
    /// A YaRN file whose context length is the length before the scaling.
    #[error(
        "the context length is {promised}: {architecture}.context_length is {stored}, the length \
         before the YaRN scaling by {factor}"
    )]
    ContextBeforeScaling {
        /// The architecture, which begins the name of the key.
        architecture: &'static str,
        /// The number in the file.
        stored: u32,
        /// The factor of the scaling.
        factor: f32,
        /// The context length of the model.
        promised: u32,
    },
    /// An adapter that has more than the model has a use for.
    #[error("the adapter applies without some of its tensors: {left_out}")]
    LeftOut {
        /// What is left out.
        left_out: LeftOut,
    },
}

/// The names, and the number of the names that are left out.
fn listed(names: &[String], count: usize) -> String {
    let all = names.join(", ");
    if count > names.len() { format!("{all} and {} more", count - names.len()) } else { all }
}
