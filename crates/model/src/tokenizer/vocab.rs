//! The tokens of a file: their spelling, their bytes, and the lookup by spelling.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::TokenizerError;

/// The purpose of a token; the numbers are those of `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ordinary text (1; some writers use 0).
    Normal,
    /// Stands for characters missing from the vocabulary (2).
    Unknown,
    /// Structure, such as the end of a turn, that text must not produce by accident (3).
    Control,
    /// Text that is always one token (4).
    UserDefined,
    /// An unused slot (5).
    Unused,
    /// One byte, spelled `<0x0A>` (6).
    Byte,
}

impl Kind {
    pub(super) fn from_i32(number: i32) -> Option<Self> {
        Some(match number {
            0 | 1 => Kind::Normal,
            2 => Kind::Unknown,
            3 => Kind::Control,
            4 => Kind::UserDefined,
            5 => Kind::Unused,
            6 => Kind::Byte,
            _ => return None,
        })
    }

    /// Whether the token is structure, not text.
    pub fn is_control(self) -> bool {
        matches!(self, Kind::Control | Kind::Unknown)
    }
}

/// Upper limit of a token's bytes. Real tokens stay below 1,000.
const MAX_TOKEN_BYTES: usize = 1 << 16;

/// Strings in one allocation. `Vocab::new` checks their lengths.
#[derive(Default)]
struct Arena {
    data: Vec<u8>,
    ends: Vec<u32>,
}

impl Arena {
    fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.ends.push(self.data.len() as u32);
    }

    fn get(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let end = *self.ends.get(id)? as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        Some(&self.data[start..end])
    }
}

/// Ids by spelling: a hash table with open addressing, at most half full. Its hash key is random,
/// so a file cannot provoke collisions.
struct Index {
    slots: Vec<u32>,
    hasher: RandomState,
}

const FREE: u32 = u32::MAX;

impl Index {
    fn slot(&self, texts: &Arena, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(key) as usize & mask;
        while self.slots[slot] != FREE && texts.get(self.slots[slot]) != Some(key) {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

pub(super) struct Vocab {
    texts: Arena,
    bytes: Arena,
    kinds: Vec<Kind>,
    index: Index,
    longest_bytes: usize,
}

impl Vocab {
    /// `kinds` has one entry per token. `spelled` gives the bytes that a normal or user-defined
    /// token stands for.
    pub fn new(
        tokens: &[&[u8]],
        kinds: Vec<Kind>,
        spelled: impl Fn(Kind, &[u8]) -> Vec<u8>,
    ) -> Result<Self, TokenizerError> {
        let total: usize = tokens.iter().map(|token| token.len()).sum();
        if tokens.is_empty() {
            return Err(TokenizerError::EmptyVocabulary);
        }
        if tokens.len() >= 1 << 31 || total >= 1 << 31 {
            return Err(TokenizerError::VocabularySize { tokens: tokens.len(), bytes: total });
        }
        let slots = vec![FREE; (tokens.len() * 2).next_power_of_two()];
        let index = Index { slots, hasher: RandomState::new() };
        let mut vocab = Vocab { texts: Arena::default(), bytes: Arena::default(), kinds, index, longest_bytes: 0 };
        for (id, token) in tokens.iter().enumerate() {
            vocab.add(id as u32, token, &spelled)?;
        }
        Ok(vocab)
    }

    fn add(&mut self, id: u32, token: &[u8], spelled: impl Fn(Kind, &[u8]) -> Vec<u8>) -> Result<(), TokenizerError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenizerError::TokenLength { id, bytes: token.len(), limit: MAX_TOKEN_BYTES });
        }
        match self.kinds[id as usize] {
            Kind::Byte => {
                let byte = parse_byte(token);
                let byte = byte.ok_or_else(|| TokenizerError::ByteToken { id, token: lossy(token) })?;
                self.bytes.push(&[byte]);
            }
            kind @ (Kind::Normal | Kind::UserDefined) => self.bytes.push(&spelled(kind, token)),
            Kind::Unknown | Kind::Control | Kind::Unused => self.bytes.push(token),
        }
        self.texts.push(token);
        self.longest_bytes = self.longest_bytes.max(token.len());
        // Some files have empty slots. An empty spelling stands for nothing and is never looked up.
        if token.is_empty() {
            return Ok(());
        }
        let slot = self.index.slot(&self.texts, token);
        match self.index.slots[slot] {
            FREE => self.index.slots[slot] = id,
            first => return Err(TokenizerError::DuplicateToken { token: lossy(token), first, second: id }),
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    pub fn longest_bytes(&self) -> usize {
        self.longest_bytes
    }

    pub fn find(&self, token: &[u8]) -> Option<u32> {
        let slot = self.index.slot(&self.texts, token);
        Some(self.index.slots[slot]).filter(|&id| id != FREE)
    }

    pub fn text(&self, id: u32) -> Option<&[u8]> {
        self.texts.get(id)
    }

    pub fn bytes(&self, id: u32) -> &[u8] {
        self.bytes.get(id).unwrap_or_default()
    }

    pub fn kind(&self, id: u32) -> Option<Kind> {
        self.kinds.get(id as usize).copied()
    }
}

/// `<0x0A>` to 10. Strict: `<0x-1>`, `<0xZZ>` and `<0xA>` give `None`.
pub(super) fn parse_byte(token: &[u8]) -> Option<u8> {
    let digits = token.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let [high, low] = digits.try_into().ok()?;
    let digit = |c: u8| (c as char).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned()
}
