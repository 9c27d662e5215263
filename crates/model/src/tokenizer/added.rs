//! Finds control and user-defined tokens in text: leftmost, then longest, in one pass.

use aho_corasick::{AhoCorasick, MatchKind};

use super::vocab::{Kind, Vocab};
use super::{Special, TokenizerError};

/// A non-empty stretch of ordinary text, or one token.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Token(u32),
}

struct Matcher {
    search: AhoCorasick,
    ids: Vec<u32>,
}

impl Matcher {
    fn new(patterns: Vec<(Vec<u8>, u32)>) -> Result<Self, TokenizerError> {
        let (patterns, ids): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns);
        let search = search.map_err(|error| TokenizerError::AddedTokens { reason: error.to_string() })?;
        Ok(Matcher { search, ids })
    }

    fn pieces<'a>(&'a self, text: &'a str, wanted: impl Fn(u32) -> bool + 'a) -> impl Iterator<Item = Piece<'a>> + 'a {
        let mut at = 0;
        let found = self.search.find_iter(text).map(|m| (m.range(), self.ids[m.pattern().as_usize()]));
        let found = found.filter(move |&(_, id)| wanted(id)).map(|(range, id)| (range, Some(id)));
        found.chain([(text.len()..text.len(), None)]).flat_map(move |(range, id)| {
            let before = &text[at..range.start];
            at = range.end;
            let before = (!before.is_empty()).then_some(Piece::Text(before));
            before.into_iter().chain(id.map(Piece::Token))
        })
    }
}

pub(super) struct Added {
    /// Matches control and user-defined tokens.
    all: Matcher,
    /// Matches user-defined tokens only.
    user_defined: Matcher,
}

impl Added {
    /// `user_text(token)` is the text to search for a user-defined token. It may differ from the
    /// spelling.
    pub fn new(vocab: &Vocab, user_text: impl Fn(&[u8]) -> Vec<u8>) -> Result<Self, TokenizerError> {
        let (mut all, mut user_defined) = (Vec::new(), Vec::new());
        for id in 0..vocab.len() as u32 {
            let (Some(kind), Some(text)) = (vocab.kind(id), vocab.text(id)) else { continue };
            // Only valid UTF-8 can match on character boundaries. An empty name would match
            // everywhere.
            if text.is_empty() || std::str::from_utf8(text).is_err() {
                continue;
            }
            if kind.is_control() {
                all.push((text.to_vec(), id));
            } else if kind == Kind::UserDefined {
                all.push((user_text(text), id));
                user_defined.push((user_text(text), id));
            }
        }
        Ok(Added { all: Matcher::new(all)?, user_defined: Matcher::new(user_defined)? })
    }

    pub fn pieces<'a>(&'a self, text: &'a str, special: Special) -> impl Iterator<Item = Piece<'a>> + 'a {
        let matcher = match special {
            Special::Parse => &self.all,
            Special::Text => &self.user_defined,
        };
        matcher.pieces(text, |_| true)
    }

    /// Cuts at control tokens only.
    pub fn controls<'a>(&'a self, text: &'a str, vocab: &'a Vocab) -> impl Iterator<Item = Piece<'a>> + 'a {
        self.all.pieces(text, |id| vocab.kind(id).is_some_and(Kind::is_control))
    }
}
