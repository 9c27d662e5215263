//! Finds control and user-defined tokens in text: leftmost, then longest, in one pass.

use super::prefixes::Prefixes;
use super::vocab::{Kind, Vocab};

/// Names of more bytes are not searched for. Real names have less than 100 bytes. The time for a
/// byte of text is proportional to this limit.
pub(super) const MAX_NAME_BYTES: usize = 1024;

/// Whether the names of control tokens in a text are encoded as these tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `<|im_start|>` in the text becomes one id: for text that we or a chat template wrote.
    Parse,
    /// `<|im_start|>` in the text stays plain characters: for text from users.
    Text,
}

/// A non-empty stretch of ordinary text, or one token.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Token(u32),
}

/// Cuts `text` at the leftmost and then longest names whose id is wanted.
fn pieces<'a>(
    names: &'a Prefixes,
    text: &'a str,
    wanted: impl Fn(u32) -> bool + 'a,
) -> impl Iterator<Item = Piece<'a>> + 'a {
    let (mut at, mut next) = (0, 0);
    let found = std::iter::from_fn(move || {
        while next < text.len() {
            let start = next;
            match names.longest(&text.as_bytes()[start..]) {
                Some((len, id)) => {
                    next += len;
                    return Some((start..next, id));
                }
                None => next += 1,
            }
        }
        None
    });
    let found = found.filter(move |&(_, id)| wanted(id)).map(|(range, id)| (range, Some(id)));
    found.chain([(text.len()..text.len(), None)]).flat_map(move |(range, id)| {
        let before = &text[at..range.start];
        at = range.end;
        let before = (!before.is_empty()).then_some(Piece::Text(before));
        before.into_iter().chain(id.map(Piece::Token))
    })
}

pub(super) struct Added {
    /// Matches control and user-defined tokens.
    all: Prefixes,
    /// Matches user-defined tokens only.
    user_defined: Prefixes,
    /// Number of tokens with longer names than are searched for.
    unsearched: usize,
}

impl Added {
    /// `user_text(token)` is the text to search for a user-defined token. It may differ from the
    /// spelling.
    pub fn new(vocab: &Vocab, user_text: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        let (mut all, mut user_defined, mut unsearched) = (Vec::new(), Vec::new(), 0);
        for id in 0..vocab.len() as u32 {
            let (Some(kind), Some(text)) = (vocab.kind(id), vocab.text(id)) else { continue };
            // Only valid UTF-8 can match on character boundaries. An empty name would match
            // everywhere.
            if text.is_empty() || std::str::from_utf8(text).is_err() {
                continue;
            }
            if text.len() > MAX_NAME_BYTES {
                unsearched += usize::from(kind.is_control() || kind == Kind::UserDefined);
            } else if kind.is_control() {
                all.push((text.into(), id));
            } else if kind == Kind::UserDefined {
                all.push((user_text(text).into(), id));
                user_defined.push((user_text(text).into(), id));
            }
        }
        Added { all: Prefixes::new(all), user_defined: Prefixes::new(user_defined), unsearched }
    }

    /// Number of tokens whose names are too long to be searched for.
    pub fn unsearched(&self) -> usize {
        self.unsearched
    }

    pub fn pieces<'a>(&'a self, text: &'a str, special: Special) -> impl Iterator<Item = Piece<'a>> + 'a {
        let names = match special {
            Special::Parse => &self.all,
            Special::Text => &self.user_defined,
        };
        pieces(names, text, |_| true)
    }

    /// Cuts at control tokens only.
    pub fn controls<'a>(&'a self, text: &'a str, vocab: &'a Vocab) -> impl Iterator<Item = Piece<'a>> + 'a {
        pieces(&self.all, text, |id| vocab.kind(id).is_some_and(Kind::is_control))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The leftmost and then longest pattern, by trying every pattern at every byte.
    fn slowly(patterns: &[&str], text: &str) -> Vec<Result<u32, String>> {
        let (mut found, mut at, mut rest) = (Vec::new(), 0, 0);
        while at < text.len() {
            let here = patterns.iter().enumerate().filter(|(_, p)| text.as_bytes()[at..].starts_with(p.as_bytes()));
            let longest = here.max_by_key(|(n, p)| (p.len(), std::cmp::Reverse(*n)));
            let Some((n, pattern)) = longest else {
                at += 1;
                continue;
            };
            found.extend((rest < at).then(|| Err(text[rest..at].to_owned())));
            found.push(Ok(n as u32));
            at += pattern.len();
            rest = at;
        }
        found.extend((rest < at).then(|| Err(text[rest..].to_owned())));
        found
    }

    fn names(patterns: &[&str]) -> Prefixes {
        Prefixes::new(patterns.iter().zip(0..).map(|(text, id)| (text.as_bytes().into(), id)).collect())
    }

    #[test]
    fn every_set_of_short_words_is_found_as_by_trying_all() {
        let words = ["a", "b", "ab", "ba", "aa", "aab", "aba", "abab", "bb", "é", "aé", "a", "abba"];
        let texts = ["", "a", "abababab", "aabaabbaé", "bbbb", "xaxabxé", "aaaaab", "éaéaab", "ababa bba"];
        for set in 0_u32..1 << words.len() {
            let chosen: Vec<&str> =
                words.iter().enumerate().filter(|(n, _)| set >> n & 1 == 1).map(|(_, word)| *word).collect();
            let names = names(&chosen);
            for text in texts {
                let pieces = pieces(&names, text, |_| true).map(|piece| match piece {
                    Piece::Token(id) => Ok(id),
                    Piece::Text(text) => Err(text.to_owned()),
                });
                assert_eq!(pieces.collect::<Vec<_>>(), slowly(&chosen, text), "{chosen:?} in {text:?}");
            }
        }
    }
}
