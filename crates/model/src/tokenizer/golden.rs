//! Compares a tokenizer with recorded results.

use gguf::shape_text;
use serde::Deserialize;

use super::{Special, Tokenizer, TokenizerError};

#[derive(Deserialize)]
struct Case {
    text: String,
    hf: Vec<u32>,
}

/// How a tokenizer can differ from a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoldenError {
    /// The recording is not the expected JSON.
    #[error("the recording is not an array of objects with text and hf: {0}")]
    Json(#[from] serde_json::Error),
    /// A text could not be encoded.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A text was encoded to other ids.
    #[error(
        "\"{}\" was encoded to {}; the recording has {}",
        text.escape_debug(), shape_text(found), shape_text(expected)
    )]
    Ids {
        /// The text.
        text: String,
        /// The recorded ids.
        expected: Vec<u32>,
        /// Our ids.
        found: Vec<u32>,
    },
    /// Ids were decoded to another text.
    #[error("\"{}\" was decoded as \"{}\"", expected.escape_debug(), found.escape_debug())]
    Text {
        /// The text, normalized as the tokenizer does.
        expected: String,
        /// The decoded text.
        found: String,
    },
}

/// Checks every entry of `json`, an array of `{"text": .., "hf": [ids]}` as in the fixtures'
/// `tok_golden.json`. The text must encode to the ids, and the ids must decode to the text. Returns
/// the number of entries.
pub fn check(tokenizer: &Tokenizer, json: &str) -> Result<usize, GoldenError> {
    let cases: Vec<Case> = serde_json::from_str(json)?;
    for Case { text, hf } in &cases {
        let found = tokenizer.encode(text, Special::Parse)?;
        if found != *hf {
            return Err(GoldenError::Ids { text: text.clone(), expected: hf.clone(), found });
        }
        let (expected, found) = (tokenizer.normalize(text), tokenizer.decode(hf));
        if found != expected {
            return Err(GoldenError::Text { expected: expected.into_owned(), found });
        }
    }
    Ok(cases.len())
}
