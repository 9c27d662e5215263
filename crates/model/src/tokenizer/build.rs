//! Builds a tokenizer from plain data. All data is checked, because files are untrusted.

use super::added::{Added, MAX_NAME_BYTES};
use super::alphabet::Alphabet;
use super::byte_level::{ByteLevel, parse_merges};
use super::parts::Parts;
use super::pieces::{self, Order, Pieces};
use super::pretokenize::PreTokenizer;
use super::turns::{self, Turns};
use super::vocab::{Kind, Vocab, parse_byte};
use super::{Model, Tokenizer, TokenizerError};
use crate::note::Note;

impl Tokenizer {
    /// Builds a tokenizer. Errors name the metadata key. Memory is at most 16 times the bytes of
    /// the data as a file stores it, plus 64 MB.
    pub fn from_parts(parts: &Parts) -> Result<Self, TokenizerError> {
        check_ids(parts)?;
        let gemma4 = parts.model == "gemma4" || (parts.model, parts.pre) == ("llama", Some("gemma4"));
        let turns = Turns::of(parts, gemma4);
        let (vocab, added, model) = match parts.model {
            _ if gemma4 => by_merges(parts, &turns)?,
            "gpt2" => byte_level(parts, &turns)?,
            "llama" => by_score(parts, &turns)?,
            found => return Err(TokenizerError::UnknownModel { found: found.to_owned() }),
        };
        let mut notes = notes(parts, &model, added.unsearched());
        notes.extend(turns::note(parts, &vocab, &turns));
        Ok(Tokenizer {
            vocab,
            added,
            model,
            bos: parts.bos_token_id,
            eos: parts.eos_token_id,
            unknown: parts.unknown_token_id,
            padding: parts.padding_token_id,
            adds_bos: gemma4 || parts.add_bos_token.unwrap_or(parts.model == "llama"),
            ends: turns.ends,
            notes,
        })
    }
}

fn byte_level(parts: &Parts, turns: &Turns) -> Result<(Vocab, Added, Model), TokenizerError> {
    let merges = need(&parts.merges, "tokenizer.ggml.merges", "gpt2")?;
    let pre = pre(parts).map_or(Ok(PreTokenizer::Qwen2), PreTokenizer::from_name)?;
    let alphabet = Alphabet::new();
    // User-defined tokens of byte-level files are spelled as plain text.
    let spelled = |kind, token: &[u8]| if kind == Kind::Normal { alphabet.decode(token) } else { token.to_vec() };
    let vocab = Vocab::new(&parts.tokens, kinds(parts, turns)?, spelled)?;
    let added = Added::new(&vocab, <[u8]>::to_vec);
    let model = Model::ByteLevel(ByteLevel::new(&vocab, pre, merges)?);
    Ok((vocab, added, model))
}

fn by_score(parts: &Parts, turns: &Turns) -> Result<(Vocab, Added, Model), TokenizerError> {
    let scores = need(&parts.scores, "tokenizer.ggml.scores", "llama")?;
    check_length("tokenizer.ggml.scores", parts.tokens.len(), scores.len())?;
    pieces::check_scores(scores)?;
    let vocab = Vocab::new(&parts.tokens, kinds(parts, turns)?, |_, piece| pieces::spelled(piece))?;
    let order = Order::Scores(pieces::by_score(&vocab, scores));
    with_pieces(parts, vocab, order, true)
}

fn by_merges(parts: &Parts, turns: &Turns) -> Result<(Vocab, Added, Model), TokenizerError> {
    let merges = need(&parts.merges, "tokenizer.ggml.merges", "gemma4")?;
    let mut kinds = kinds(parts, turns)?;
    if !kinds.contains(&Kind::Byte) {
        let bytes = kinds
            .iter_mut()
            .zip(&parts.tokens)
            .filter(|(kind, token)| **kind == Kind::Normal && parse_byte(token).is_some());
        bytes.for_each(|(kind, _)| *kind = Kind::Byte);
    }
    let vocab = Vocab::new(&parts.tokens, kinds, |_, piece| pieces::spelled(piece))?;
    // Incomplete merges are accepted: vocabularies are cut to the embedding's rows, and test models
    // have only some of the pieces.
    let order = Order::Merges(parse_merges(&vocab, merges, false)?);
    with_pieces(parts, vocab, order, false)
}

fn with_pieces(
    parts: &Parts,
    vocab: Vocab,
    order: Order,
    prefix: bool,
) -> Result<(Vocab, Added, Model), TokenizerError> {
    let added = Added::new(&vocab, pieces::user_text);
    let prefix = parts.add_space_prefix.unwrap_or(prefix);
    let model = Model::Pieces(Pieces::new(&vocab, order, parts.unknown_token_id, prefix));
    Ok((vocab, added, model))
}

fn notes(parts: &Parts, model: &Model, unsearched: usize) -> Vec<Note> {
    let pre = (parts.model == "gpt2" && pre(parts).is_none()).then_some(Note::MissingPre);
    let (byte_ids, unknown) = match model {
        Model::ByteLevel(model) => (model.byte_ids(), None),
        Model::Pieces(model) => (model.byte_ids(), parts.unknown_token_id),
    };
    let missing = (0..=255).filter(|&byte| byte_ids[usize::from(byte)].is_none());
    let (count, first) = (missing.clone().count(), missing.min());
    // With an unknown token, every text can be encoded.
    let bytes = first.filter(|_| unknown.is_none()).map(|first: u8| Note::MissingBytes { count, first });
    let names = (unsearched > 0).then_some(Note::LongNames { count: unsearched, limit: MAX_NAME_BYTES });
    pre.into_iter().chain(bytes).chain(names).collect()
}

fn need<'a, T>(value: &'a Option<T>, key: &'static str, model: &'static str) -> Result<&'a T, TokenizerError> {
    value.as_ref().ok_or(TokenizerError::MissingKey { key, model })
}

fn check_length(key: &'static str, expected: usize, found: usize) -> Result<(), TokenizerError> {
    if expected == found { Ok(()) } else { Err(TokenizerError::ArrayLength { key, expected, found }) }
}

/// The kind of each token: that of the file, but control for the tokens of turns.
fn kinds(parts: &Parts, turns: &Turns) -> Result<Vec<Kind>, TokenizerError> {
    let mut kinds = vec![Kind::Normal; parts.tokens.len()];
    if let Some(types) = &parts.token_type {
        check_length("tokenizer.ggml.token_type", parts.tokens.len(), types.len())?;
        for (id, &found) in types.iter().enumerate() {
            kinds[id] = Kind::from_i32(found).ok_or(TokenizerError::TokenType { id: id as u32, found })?;
        }
    }
    turns.controls.iter().for_each(|&id| turns::make_control(&mut kinds[id as usize]));
    Ok(kinds)
}

/// The name of the pre-tokenizer; `None` if the name says nothing.
fn pre<'a>(parts: &Parts<'a>) -> Option<&'a str> {
    parts.pre.filter(|pre| !matches!(pre.trim(), "" | "default"))
}

fn check_ids(parts: &Parts) -> Result<(), TokenizerError> {
    let tokens = parts.tokens.len();
    if tokens == 0 {
        return Err(TokenizerError::EmptyVocabulary);
    }
    let ids = [
        ("tokenizer.ggml.bos_token_id", parts.bos_token_id),
        ("tokenizer.ggml.eos_token_id", parts.eos_token_id),
        ("tokenizer.ggml.eot_token_id", parts.eot_token_id),
        ("tokenizer.ggml.eom_token_id", parts.eom_token_id),
        ("tokenizer.ggml.unknown_token_id", parts.unknown_token_id),
        ("tokenizer.ggml.padding_token_id", parts.padding_token_id),
    ];
    let listed = parts.eos_token_ids.iter().map(|&id| ("tokenizer.ggml.eos_token_ids", Some(id)));
    for (key, id) in ids.into_iter().chain(listed) {
        if let Some(id) = id.filter(|&id| id as usize >= tokens) {
            return Err(TokenizerError::IdOutsideVocabulary { key, id, tokens });
        }
    }
    Ok(())
}
