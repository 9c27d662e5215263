//! Compares a tokenizer with recorded ones.

use serde::Deserialize;

use super::{Special, Tokenizer};

#[derive(Deserialize)]
struct Case {
    text: String,
    hf: Vec<u32>,
}

/// How a comparison with recorded ids can fail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GoldenError {
    /// The recording is not the JSON that we expect.
    #[error("the recording is no array of objects with text and hf: {0}")]
    Json(#[from] serde_json::Error),
    /// A text became other ids.
    #[error("{text:?} became {found:?}, recorded are {expected:?}")]
    Ids {
        /// The text.
        text: String,
        /// The recorded ids.
        expected: Vec<u32>,
        /// Ours.
        found: Vec<u32>,
    },
    /// Ids became another text.
    #[error("{expected:?} came back as {found:?}")]
    Text {
        /// The text, normalized as the tokenizer does.
        expected: String,
        /// What decoding gave.
        found: String,
    },
}

/// Checks every entry of `json`, an array of `{"text": .., "hf": [ids]}` as in the fixtures' `tok_golden.json`: the ids, and
/// that decoding them gives the text back. Returns how many there were.
pub fn check(tokenizer: &Tokenizer, json: &str) -> Result<usize, GoldenError> {
    let cases: Vec<Case> = serde_json::from_str(json)?;
    for Case { text, hf } in &cases {
        let found = tokenizer.encode(text, Special::Parse);
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
