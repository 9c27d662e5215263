//! Text to token ids and back, with the tokenizer stored in the model's file.
//!
//! There are three values of `tokenizer.ggml.model`. `gpt2` is byte-level BPE (Qwen): NFC, then a
//! pre-tokenizer that cuts words, then merges by rank over bytes. `llama` is SentencePiece's BPE
//! (Gemma 1 to 3): spaces become U+2581, merges go by the score of the joined piece, and characters
//! missing from the vocabulary become byte tokens. `gemma4` is like `llama` but merges by rank.
//!
//! Results equal those of Hugging Face's `tokenizers`. Where llama.cpp differs, `tokenizers` is the
//! reference. It normalizes by the tables of Unicode 9, so for later characters the order of
//! combining marks may differ.
//!
//! Time is O(n log n) in the length of the text for every kind, even for one unbroken word.

mod added;
mod alphabet;
mod build;
mod byte_level;
mod decode;
mod error;
pub mod golden;
mod load;
mod merge;
mod parts;
mod pieces;
pub(crate) mod prefixes;
mod pretokenize;
mod turns;
mod vocab;

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use added::{Added, Piece};
use byte_level::ByteLevel;
use merge::Merger;
use pieces::Pieces;
use vocab::Vocab;

use crate::note::Note;

pub use added::Special;
pub use decode::{Control, Decoder};
pub use error::TokenizerError;
pub use parts::Parts;
pub use vocab::Kind;

enum Model {
    ByteLevel(ByteLevel),
    Pieces(Pieces),
}

/// A tokenizer. Immutable once built; share it by reference or in an `Arc`.
pub struct Tokenizer {
    vocab: Vocab,
    added: Added,
    model: Model,
    bos: Option<u32>,
    eos: Option<u32>,
    unknown: Option<u32>,
    padding: Option<u32>,
    adds_bos: bool,
    ends: Vec<u32>,
    notes: Vec<Note>,
}

impl Tokenizer {
    /// The ids of `text`, without a leading BOS. User-defined tokens are matched in both modes, as
    /// Hugging Face does with added tokens that are not special.
    ///
    /// # Errors
    /// [`TokenizerError::MissingByte`] if the text needs a byte for which the vocabulary has no
    /// token.
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        let mut merger = Merger::default();
        for piece in self.added.pieces(text, special) {
            match piece {
                Piece::Token(id) => ids.push(id),
                Piece::Text(text) => match &self.model {
                    Model::ByteLevel(model) => model.encode(&normalized(text), &mut merger, &mut ids)?,
                    Model::Pieces(model) => model.encode(&self.vocab, text, &mut merger, &mut ids)?,
                },
            }
        }
        Ok(ids)
    }

    /// The ids of a whole prompt: [`encode`](Self::encode), plus a leading BOS if the file asks for
    /// one and the text does not start with it.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_prompt(&self, text: &str, special: Special) -> Result<Vec<u32>, TokenizerError> {
        self.encode(text, special).map(|ids| self.with_bos(ids))
    }

    /// The assumptions that were made to build the tokenizer.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    pub(crate) fn with_bos(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let (true, Some(bos)) = (self.adds_bos, self.bos)
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }

    /// `text` as the tokenizer sees it, which is exactly the text that decoding its ids returns:
    /// NFC for byte-level BPE; otherwise U+2581 becomes a space.
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.model {
            Model::ByteLevel(_) => normalized(text),
            Model::Pieces(_) if text.contains(pieces::SPACE) => Cow::Owned(text.replace(pieces::SPACE, " ")),
            Model::Pieces(_) => Cow::Borrowed(text),
        }
    }

    /// The text of `ids`, with control tokens by name. Invalid UTF-8 becomes U+FFFD after all bytes
    /// are joined, so a character split over several tokens survives. Ids outside the vocabulary
    /// have no text.
    pub fn decode(&self, ids: &[u32]) -> String {
        String::from_utf8_lossy(&self.decode_bytes(ids)).into_owned()
    }

    /// The exact bytes of `ids`.
    pub fn decode_bytes(&self, ids: &[u32]) -> Vec<u8> {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.token_bytes(id)).copied().collect();
        match bytes.strip_prefix(b" ") {
            Some(rest) if self.strips_space() => rest.to_vec(),
            _ => bytes,
        }
    }

    /// The bytes that one token stands for; empty for an id outside the vocabulary.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.vocab.bytes(id)
    }

    /// A token as the file spells it (`Ġthe`, `▁the`, `<0x0A>`).
    pub fn id_to_token(&self, id: u32) -> Option<Cow<'_, str>> {
        self.vocab.text(id).map(String::from_utf8_lossy)
    }

    /// The id of the token with this spelling in the file.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.vocab.find(token.as_bytes())
    }

    /// The id of the control token with exactly this name.
    pub fn control(&self, name: &str) -> Option<u32> {
        self.token_to_id(name).filter(|&id| self.kind(id).is_some_and(Kind::is_control))
    }

    /// The kind of a token; `None` outside the vocabulary.
    pub fn kind(&self, id: u32) -> Option<Kind> {
        self.vocab.kind(id)
    }

    /// Number of tokens in the file. The model's embedding has exactly as many rows: where a model
    /// pads its embedding, the writer of the file pads the vocabulary with unused tokens.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// The token that begins a text, if the file names one.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Whether a prompt starts with [`bos`](Self::bos).
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// The token that ends a text, if the file names one.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The token for characters missing from the vocabulary, if the file names one.
    pub fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// The padding token, if the file names one.
    pub fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// All ids after which generation stops, ascending: end of text, of turn, of message.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Whether generation stops after this id.
    pub fn is_end(&self, id: u32) -> bool {
        self.ends.binary_search(&id).is_ok()
    }

    /// Every control token: its id and its name.
    pub fn controls(&self) -> impl Iterator<Item = (u32, &str)> {
        self.named(|kind| kind.is_control())
    }

    /// Every user-defined token: its id and its name.
    pub fn user_defined(&self) -> impl Iterator<Item = (u32, &str)> {
        self.named(|kind| kind == Kind::UserDefined)
    }

    fn named(&self, wanted: impl Fn(Kind) -> bool) -> impl Iterator<Item = (u32, &str)> {
        let ids = (0..self.vocab.len() as u32).filter(move |&id| self.vocab.kind(id).is_some_and(&wanted));
        ids.filter_map(|id| std::str::from_utf8(self.vocab.text(id)?).ok().map(|name| (id, name)))
    }

    /// Cuts `text` at its control tokens and yields them too, as `Ok(id)`. User-defined tokens stay
    /// in the text.
    pub(crate) fn split_controls<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Result<u32, &'a str>> {
        self.added.controls(text, &self.vocab).map(|piece| match piece {
            Piece::Token(id) => Ok(id),
            Piece::Text(text) => Err(text),
        })
    }

    /// Whether decoding removes one leading space, which encoding had added.
    fn strips_space(&self) -> bool {
        matches!(&self.model, Model::Pieces(model) if model.add_space_prefix())
    }
}

fn normalized(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}
