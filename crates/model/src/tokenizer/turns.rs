//! The tokens that end answers, and those that open and close turns.

use super::parts::Parts;
use super::vocab::{Kind, Vocab, lossy, parse_byte};
use crate::note::Note;

/// Tokens after which all models of the two families stop, whatever the keys say.
const END_NAMES: [&str; 4] = ["<|im_end|>", "<|endoftext|>", "<turn|>", "<end_of_turn>"];
/// With this token, Gemma 4 waits for the result of the caller's tool.
const GEMMA4_END_NAME: &str = "<|tool_response>";
/// Tokens that open a turn.
const OPEN_NAMES: [&str; 3] = ["<|im_start|>", "<|turn>", "<start_of_turn>"];
/// Number of names that a note lists.
const LISTED: usize = 4;

/// The tokens of turns in a vocabulary.
pub(super) struct Turns {
    /// All ids after which generation stops, ascending: those that the keys name, and those with
    /// known names.
    pub ends: Vec<u32>,
    /// The ids that are control tokens whatever type the file gives them, ascending: the ends and
    /// the tokens that open a turn. Tokens of one byte or character are not among them, because
    /// ordinary text needs them.
    pub controls: Vec<u32>,
}

impl Turns {
    /// The ids that the keys of `parts` name are in its vocabulary.
    pub fn of(parts: &Parts, gemma4: bool) -> Self {
        let keys = [parts.eos_token_id, parts.eot_token_id, parts.eom_token_id].into_iter().flatten();
        let mut ends: Vec<u32> = keys.chain(parts.eos_token_ids.iter().copied()).collect();
        let mut controls = vec![];
        for (id, token) in (0..).zip(&parts.tokens) {
            let is = |name: &str| name.as_bytes() == *token;
            if END_NAMES.into_iter().any(is) || (gemma4 && is(GEMMA4_END_NAME)) {
                ends.push(id);
            } else if OPEN_NAMES.into_iter().any(is) {
                controls.push(id);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        controls.extend(ends.iter().filter(|&&id| !is_byte(parts.tokens[id as usize])));
        controls.sort_unstable();
        Self { ends, controls }
    }
}

/// Whether a token stands for one byte or one character.
fn is_byte(token: &[u8]) -> bool {
    parse_byte(token).is_some() || std::str::from_utf8(token).is_ok_and(|name| name.chars().count() < 2)
}

/// Makes a token one of control, unless it is already, or stands for a byte.
pub(super) fn make_control(kind: &mut Kind) {
    if !kind.is_control() && *kind != Kind::Byte {
        *kind = Kind::Control;
    }
}

/// The note about tokens that are control tokens though the file gives them another type.
pub(super) fn note(parts: &Parts, vocab: &Vocab, turns: &Turns) -> Option<Note> {
    let stored = |id: u32| {
        parts.token_type.as_ref().and_then(|types| Kind::from_i32(types[id as usize])).unwrap_or(Kind::Normal)
    };
    let changed =
        || turns.controls.iter().filter(|&&id| vocab.kind(id) == Some(Kind::Control) && !stored(id).is_control());
    let names = changed().take(LISTED).map(|&id| lossy(parts.tokens[id as usize]));
    let (names, count): (Vec<String>, usize) = (names.collect(), changed().count());
    (count > 0).then_some(Note::TurnTypes { names, count })
}
