//! Byte-level BPE: each word of the pre-tokenizer is merged by rank, starting from single bytes.

use std::collections::HashMap;

use super::TokenizerError;
use super::alphabet::byte_to_char;
use super::merge::{Merger, Pair};
use super::pretokenize::PreTokenizer;
use super::vocab::{Vocab, lossy};

/// The map from two ids to the rank and the id of their merge.
pub(super) type Merges = HashMap<(u32, u32), (u32, u32)>;

pub(super) struct ByteLevel {
    pre: PreTokenizer,
    /// The id of each byte, if it has one.
    byte_ids: [Option<u32>; 256],
    merges: Merges,
}

impl ByteLevel {
    pub fn new(vocab: &Vocab, pre: PreTokenizer, merges: &[&[u8]]) -> Result<Self, TokenizerError> {
        let byte_ids = byte_to_char().map(|c| vocab.find(c.encode_utf8(&mut [0; 4]).as_bytes()));
        // Merges of missing bytes have missing tokens.
        let whole = byte_ids.iter().all(Option::is_some);
        Ok(ByteLevel { pre, byte_ids, merges: parse_merges(vocab, merges, whole)? })
    }

    pub fn byte_ids(&self) -> &[Option<u32>; 256] {
        &self.byte_ids
    }

    pub fn encode(&self, text: &str, merger: &mut Merger, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        for word in self.pre.words(text) {
            merger.clear();
            for (at, byte) in word.bytes().enumerate() {
                merger.push(self.byte_ids[byte as usize].ok_or(TokenizerError::MissingByte { byte })?, at);
            }
            merger.run(word.len(), |pair| ranked(&self.merges, pair));
            ids.extend(merger.symbols(word.len()).map(|(id, _)| id));
        }
        Ok(())
    }
}

pub(super) fn ranked(merges: &Merges, pair: Pair) -> Option<(u64, u32)> {
    merges.get(&(pair.left, pair.right)).map(|&(rank, id)| (rank as u64, id))
}

/// Parses `"a b"` at index r: the ids of a and b merge to the id of ab, if it has one, with rank r.
/// A repeated pair keeps its first rank. A merge of a missing token is an error if `whole`;
/// otherwise it is left out.
pub(super) fn parse_merges(vocab: &Vocab, merges: &[&[u8]], whole: bool) -> Result<Merges, TokenizerError> {
    let mut table = Merges::with_capacity(merges.len());
    let mut joined = Vec::new();
    for (index, merge) in merges.iter().enumerate() {
        let malformed = || TokenizerError::MalformedMerge { index, merge: lossy(merge) };
        let mut halves = merge.split(|&c| c == b' ');
        let (left, right) = halves.next().zip(halves.next()).ok_or_else(malformed)?;
        if left.is_empty() || right.is_empty() || halves.next().is_some() {
            return Err(malformed());
        }
        joined.clear();
        joined.extend_from_slice(left);
        joined.extend_from_slice(right);
        let pair = match (vocab.find(left), vocab.find(right)) {
            (Some(left), Some(right)) => (left, right),
            _ if !whole => continue,
            (found, _) => {
                let piece = lossy(if found.is_some() { right } else { left });
                return Err(TokenizerError::MergeOutsideVocabulary { index, piece });
            }
        };
        // Some files have merges whose result was cut from the vocabulary. Such a merge can never
        // apply.
        if let Some(merged) = vocab.find(&joined) {
            table.entry(pair).or_insert((index as u32, merged));
        }
    }
    Ok(table)
}
