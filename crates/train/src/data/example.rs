//! Documents and the texts that they stand for.

use super::Texts;
use crate::batch::Document;

/// A stretch of a document's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Text, with control tokens by name.
    pub text: String,
    /// Whether its tokens are learnt.
    pub learnt: bool,
}

impl Texts {
    /// The text of a document in pieces that are learnt and pieces that are not, in turn.
    #[must_use]
    pub fn pieces(&self, document: &Document) -> Vec<Piece> {
        let _ = document;
        todo!()
    }
}
