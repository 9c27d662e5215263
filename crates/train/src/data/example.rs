//! Examples as documents of bounded length, and the texts that documents stand for.

use super::line::Line;
use super::options::{DataOptions, Longer};
use super::texts::Texts;
use crate::batch::Document;

/// The documents of an example that fit.
#[derive(Debug, Default)]
pub(super) struct Example {
    /// Empty if none fits.
    pub documents: Vec<Document>,
    /// The ids that are learnt.
    pub targets: u64,
    /// Documents that were cut.
    pub cut: u64,
    /// Documents that do not fit.
    pub dropped: u64,
    /// Columns and keys that had no effect.
    pub unused: Vec<String>,
}

impl Texts {
    /// The example in a line. The error is the reason why the line is bad.
    pub(super) fn example(&self, line: &[u8], options: &DataOptions) -> Result<Example, String> {
        let mut unused = vec![];
        let marked = match Line::read(line, self.template.as_ref(), &self.render, &mut unused)? {
            Line::Ids(document) => return Ok(Example { unused, ..self.fitted(vec![document], options)? }),
            Line::Conversation(conversation) => self.conversation(&conversation, options)?,
            Line::Completion { prompt, completion } => vec![self.completion(&prompt, &completion)?],
            Line::Text(text) => vec![self.text(&text, true)?],
        };
        let documents = marked.into_iter().map(|marked| marked.document(options.learn)).collect();
        Ok(Example { unused, ..self.fitted(documents, options)? })
    }

    /// A stretch of a file of text. An end token follows the last one.
    pub(super) fn stretch(&self, text: &str, last: bool, options: &DataOptions) -> Result<Example, String> {
        self.fitted(vec![self.text(text, last)?.document(options.learn)], options)
    }

    fn fitted(&self, documents: Vec<Document>, options: &DataOptions) -> Result<Example, String> {
        let vocabulary = self.vocabulary();
        if let Some(id) = documents.iter().flat_map(|document| &document.ids).find(|&&id| id >= vocabulary) {
            return Err(format!("the id {id} is outside the vocabulary of {vocabulary} ids"));
        }
        let learns = |document: &Document| learnt(document, vocabulary).next().is_some();
        if !documents.iter().any(learns) {
            return Err("nothing to learn".to_string());
        }
        let (mut example, length) = (Example::default(), options.length as usize);
        for mut document in documents {
            let longer = document.ids.len() > length;
            document.ids.truncate(length);
            document.targets.truncate(length);
            document.weights.truncate(length);
            if longer && options.longer == Longer::Drop || !learns(&document) {
                example.dropped += 1;
                continue;
            }
            document.continues = !example.documents.is_empty();
            example.cut += u64::from(longer);
            example.targets += learnt(&document, vocabulary).count() as u64;
            example.documents.push(document);
        }
        Ok(example)
    }

    pub(super) fn vocabulary(&self) -> u32 {
        u32::try_from(self.tokenizer.vocab_size()).unwrap_or(u32::MAX)
    }
}

/// The rows with a loss of some weight.
fn learnt(document: &Document, vocabulary: u32) -> impl Iterator<Item = usize> {
    document.learnt(vocabulary).map(|(t, _)| t).filter(|&t| document.weight(t) > 0.0)
}

/// A stretch of a document's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Text, with control tokens by name.
    pub text: String,
    /// Whether its tokens are learnt.
    pub learnt: bool,
}

impl Texts {
    /// The text of a document in pieces that are learnt and pieces that are not, in turn. The last
    /// target is a part of it.
    #[must_use]
    pub fn pieces(&self, document: &Document) -> Vec<Piece> {
        let mut marks = vec![false; document.ids.len()];
        learnt(document, self.vocabulary()).filter(|&t| t < document.ids.len()).for_each(|t| marks[t] = true);
        let last = marks.last().filter(|learnt| **learnt).and(document.targets.last());
        let after = document.ids.iter().skip(1).chain(last).copied().zip(marks);
        let mut pieces: Vec<(Vec<u8>, bool)> = vec![];
        for (id, learnt) in document.ids.first().map(|&id| (id, false)).into_iter().chain(after) {
            let bytes = self.tokenizer.token_bytes(id);
            match pieces.last_mut() {
                Some((text, same)) if *same == learnt => text.extend_from_slice(bytes),
                _ => pieces.push((bytes.to_vec(), learnt)),
            }
        }
        pieces
            .into_iter()
            .map(|(text, learnt)| Piece { text: String::from_utf8_lossy(&text).into_owned(), learnt })
            .collect()
    }
}
