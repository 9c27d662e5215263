//! BPE over SentencePiece's text: spaces are U+2581 and characters missing from the vocabulary are
//! bytes. Text is not cut into words. With a list of merges, it is cut at line breaks.

use super::TokenizerError;
use super::byte_level::{Merges, ranked};
use super::merge::{Merger, NONE, Pair};
use super::vocab::{Kind, Vocab};

pub(super) const SPACE: char = '\u{2581}';

/// Which neighbours merge first.
pub(super) enum Order {
    /// By the priority of the merged piece, one number per id: user-defined pieces in order of id,
    /// then the others by falling score.
    Scores(Vec<u32>),
    /// By the file's list of merges.
    Merges(Merges),
}

pub(super) struct Pieces {
    order: Order,
    /// The id of each byte, if it has one.
    byte_ids: [Option<u32>; 256],
    unknown: Option<u32>,
    /// `[n]` is the id of a run of n spaces, as a user-defined piece. Files spell it with plain
    /// spaces.
    space_runs: Vec<Option<u32>>,
    add_space_prefix: bool,
}

/// The merge priority of each id, by `scores`; 0 is first.
pub(super) fn by_score(vocab: &Vocab, scores: &[f32]) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..vocab.len() as u32).collect();
    let class = |id: u32| vocab.kind(id) != Some(Kind::UserDefined);
    let score = |id: u32| if class(id) { scores[id as usize] } else { 0.0 };
    ids.sort_by(|&a, &b| class(a).cmp(&class(b)).then(score(b).total_cmp(&score(a))));
    let mut places = vec![0; ids.len()];
    ids.iter().enumerate().for_each(|(place, &id)| places[id as usize] = place as u32);
    places
}

impl Pieces {
    pub fn new(vocab: &Vocab, order: Order, unknown: Option<u32>, add_space_prefix: bool) -> Self {
        let (mut byte_ids, mut space_runs) = ([None; 256], Vec::new());
        for id in 0..vocab.len() as u32 {
            let text = vocab.text(id).unwrap_or_default();
            match (vocab.kind(id), vocab.bytes(id)) {
                (Some(Kind::Byte), &[byte]) => byte_ids[byte as usize] = Some(id),
                (Some(Kind::UserDefined), spaces) if !text.is_empty() && text.iter().all(|&c| c == b' ') => {
                    space_runs.resize(space_runs.len().max(spaces.len() + 1), None);
                    space_runs[spaces.len()] = Some(id);
                }
                _ => {}
            }
        }
        Pieces { order, byte_ids, unknown, space_runs, add_space_prefix }
    }

    pub fn byte_ids(&self) -> &[Option<u32>; 256] {
        &self.byte_ids
    }

    pub fn add_space_prefix(&self) -> bool {
        self.add_space_prefix
    }

    /// Encodes a stretch of text between added tokens.
    pub fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        merger: &mut Merger,
        ids: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let prefix = self.add_space_prefix.then_some(SPACE);
        let whole: String = prefix.into_iter().chain(text.chars().map(|c| if c == ' ' { SPACE } else { c })).collect();
        let lines = matches!(self.order, Order::Merges(_));
        let (mut rest, mut after_unknown) = (whole.as_str(), false);
        for run in whole.as_bytes().chunk_by(|a, b| !lines || (*a == b'\n') == (*b == b'\n')) {
            let word;
            (word, rest) = rest.split_at(run.len());
            after_unknown = self.encode_word(vocab, word, merger, ids, after_unknown)?;
        }
        Ok(())
    }

    /// Encodes a part of the text that does not merge with its surroundings. `after_unknown` tells
    /// whether the preceding part ended in an unknown character. The result tells whether this part
    /// does.
    fn encode_word(
        &self,
        vocab: &Vocab,
        word: &str,
        merger: &mut Merger,
        ids: &mut Vec<u32>,
        mut after_unknown: bool,
    ) -> Result<bool, TokenizerError> {
        merger.clear();
        for (at, c) in word.char_indices() {
            merger.push(self.piece(vocab, c.encode_utf8(&mut [0; 4])).unwrap_or(NONE), at);
        }
        merger.run(word.len(), |pair| match &self.order {
            Order::Merges(merges) => ranked(merges, pair),
            Order::Scores(places) => self.scored(vocab, places, word, pair),
        });
        for (id, range) in merger.symbols(word.len()) {
            let bytes = word[range].bytes();
            let missing =
                if id == NONE { bytes.clone().find(|&byte| self.byte_ids[byte as usize].is_none()) } else { None };
            match (missing, self.unknown) {
                (Some(byte), None) => return Err(TokenizerError::MissingByte { byte }),
                // Neighbouring unknown characters are one unknown token.
                (Some(_), Some(unknown)) => ids.extend((!after_unknown).then_some(unknown)),
                (None, _) if id == NONE => ids.extend(bytes.filter_map(|byte| self.byte_ids[byte as usize])),
                (None, _) => ids.push(id),
            }
            after_unknown = missing.is_some();
        }
        Ok(after_unknown)
    }

    /// Merges two pieces if the result is in the vocabulary. If several pairs give the same piece,
    /// the pair with the longer left half goes first.
    fn scored(&self, vocab: &Vocab, places: &[u32], word: &str, pair: Pair) -> Option<(u64, u32)> {
        let fits = pair.left != NONE && pair.right != NONE;
        let limit = vocab.longest_bytes().max(self.space_runs.len() * SPACE.len_utf8());
        let id = (fits && pair.end - pair.start <= limit).then(|| self.piece(vocab, &word[pair.start..pair.end]))??;
        let shorter_left = u32::MAX - (pair.middle - pair.start) as u32;
        Some((((places[id as usize] as u64) << 32) | shorter_left as u64, id))
    }

    /// The id of `text` if it is a normal or user-defined piece, or a run of spaces.
    fn piece(&self, vocab: &Vocab, text: &str) -> Option<u32> {
        let spelled = vocab.find(text.as_bytes());
        let spelled = spelled.filter(|&id| matches!(vocab.kind(id), Some(Kind::Normal | Kind::UserDefined)));
        spelled.or_else(|| {
            let spaces = text.len() / SPACE.len_utf8();
            let run = self.space_runs.get(spaces).copied().flatten()?;
            text.chars().all(|c| c == SPACE).then_some(run)
        })
    }
}

/// The bytes that a piece stands for.
pub(super) fn spelled(piece: &[u8]) -> Vec<u8> {
    std::str::from_utf8(piece).map_or_else(|_| piece.to_vec(), |text| text.replace(SPACE, " ").into_bytes())
}

/// The text to search for a user-defined piece. A run of spaces is found as U+2581 only; plain
/// spaces are left to merging.
pub(super) fn user_text(piece: &[u8]) -> Vec<u8> {
    if piece.iter().all(|&c| c == b' ') { SPACE.to_string().repeat(piece.len()).into_bytes() } else { piece.to_vec() }
}

/// Refuses NaN, because it cannot be ordered.
pub(super) fn check_scores(scores: &[f32]) -> Result<(), TokenizerError> {
    match scores.iter().position(|score| score.is_nan()) {
        Some(id) => Err(TokenizerError::Score { id: id as u32 }),
        None => Ok(()),
    }
}
