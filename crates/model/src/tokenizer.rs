//! Text to token ids and back, by the tokenizer that the model's file carries.
//!
//! Three kinds of `tokenizer.ggml.model` share one shape. `gpt2` is byte-level BPE (Qwen): NFC, a pre-tokenizer that cuts
//! words, merges by rank over bytes. `llama` is SentencePiece's BPE (Gemma 1 to 3): spaces become U+2581, merges by the
//! score of the joined piece, bytes for what the vocabulary lacks. `gemma4` looks like `llama` but merges by rank.
//! Results equal those of Hugging Face's `tokenizers`, which is the reference where llama.cpp differs; characters younger than
//! Unicode 9, by whose tables it normalizes, may differ in the order of their combining marks.
//!
//! Time is O(n log n) in the text for every kind, one unbroken word included.

mod added;
mod alphabet;
mod build;
mod byte_level;
mod decode;
mod error;
pub mod golden;
mod load;
mod merge;
mod pieces;
mod pretokenize;
mod vocab;

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use added::{Added, Piece};
use byte_level::ByteLevel;
use merge::Merger;
use pieces::Pieces;
use vocab::Vocab;

pub use build::Parts;
pub use decode::{Control, Decoder};
pub use error::TokenizerError;
pub use vocab::Kind;

/// Whether the names of control tokens in a text mean those tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `<|im_start|>` in the text becomes its one id: for text that we or a chat template wrote.
    Parse,
    /// `<|im_start|>` in the text stays the characters it is made of: for text that others wrote.
    Text,
}

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
}

impl Tokenizer {
    /// The ids of `text`, without a leading BOS. Tokens that the file calls user-defined are found in both modes, as
    /// Hugging Face does with added tokens that are not special.
    pub fn encode(&self, text: &str, special: Special) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        let mut merger = Merger::default();
        for piece in self.added.pieces(text, special) {
            match piece {
                Piece::Token(id) => ids.push(id),
                Piece::Text(text) => match &self.model {
                    Model::ByteLevel(model) => model.encode(&normalized(text), &mut merger, &mut ids),
                    Model::Pieces(model) => model.encode(&self.vocab, text, &mut merger, &mut ids),
                },
            }
        }
        ids
    }

    /// The ids of a whole prompt: `encode`, with BOS in front where the file asks for one and the text brought none.
    pub fn encode_prompt(&self, text: &str, special: Special) -> Vec<u32> {
        self.with_bos(self.encode(text, special))
    }

    pub(crate) fn with_bos(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let (true, Some(bos)) = (self.adds_bos, self.bos)
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }

    /// `text` as the tokenizer sees it: what decoding its ids gives back, to the byte. NFC for byte-level BPE; pieces that
    /// spell spaces as U+2581 give plain spaces for it.
    pub fn normalize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.model {
            Model::ByteLevel(_) => normalized(text),
            Model::Pieces(_) if text.contains(pieces::SPACE) => Cow::Owned(text.replace(pieces::SPACE, " ")),
            Model::Pieces(_) => Cow::Borrowed(text),
        }
    }

    /// The text of `ids`, control tokens by name. Bytes that are no UTF-8 become U+FFFD once the whole is put together,
    /// so a character spread over several tokens survives. Ids outside the vocabulary have no text.
    pub fn decode(&self, ids: &[u32]) -> String {
        String::from_utf8_lossy(&self.decode_bytes(ids)).into_owned()
    }

    /// The bytes of `ids`, exactly as the tokens hold them.
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

    /// The id of the token that the file spells so.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.vocab.find(token.as_bytes())
    }

    /// What kind of token this is, or `None` outside the vocabulary.
    pub fn kind(&self, id: u32) -> Option<Kind> {
        self.vocab.kind(id)
    }

    /// Number of tokens in the file. The model's embedding has exactly as many rows: writers fill the vocabulary up with unused tokens
    /// where a model pads its embedding.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// The token that opens a text, where the file names one.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Whether a prompt starts with [`bos`](Self::bos).
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// The token that ends a text, where the file names one.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The token for what the vocabulary lacks, where the file names one.
    pub fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// The padding token, where the file names one.
    pub fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// Every id after which generation stops, ascending: end of text, of turn, of message.
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

    /// The pieces of `text` between and including its control tokens; user-defined tokens stay in the text.
    pub(crate) fn split_controls<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Result<u32, &'a str>> {
        self.added.controls(text, &self.vocab).map(|piece| match piece {
            Piece::Token(id) => Ok(id),
            Piece::Text(text) => Err(text),
        })
    }

    /// Whether a decoded text loses one leading space, which encoding had added.
    fn strips_space(&self) -> bool {
        matches!(&self.model, Model::Pieces(model) if model.add_space_prefix())
    }
}

fn normalized(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}
