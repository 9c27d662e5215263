//! Cuts text into words. Merges never cross a word boundary.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::TokenizerError;

/// The rule by which a file's tokenizer cuts words, `tokenizer.ggml.pre`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreTokenizer {
    /// The alternatives of one regular expression, here in two lines. The first match wins.
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|`
    /// ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    Qwen2,
}

impl PreTokenizer {
    pub fn from_name(name: &str) -> Result<Self, TokenizerError> {
        match name {
            "qwen2" | "deepseek-r1-qwen" => Ok(PreTokenizer::Qwen2),
            _ => Err(TokenizerError::UnknownPre { found: name.to_owned(), known: "qwen2 and deepseek-r1-qwen" }),
        }
    }

    /// The words of `text`, in order and without gaps. Each step reads its word and one run of
    /// spaces behind it.
    pub fn words(self, text: &str) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (word, after) = rest.split_at(qwen2_word(rest)?);
            rest = after;
            Some(word)
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Newline,
    Space,
    Other,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Number,
        '\r' | '\n' => Class::Newline,
        _ if c.is_whitespace() => Class::Space,
        _ if c.is_ascii() => Class::Other,
        _ => match c.general_category_group() {
            GeneralCategoryGroup::Letter => Class::Letter,
            GeneralCategoryGroup::Number => Class::Number,
            _ => Class::Other,
        },
    }
}

/// Length in bytes of the first word of `text`; `None` if it is empty.
fn qwen2_word(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let first = chars.next()?;
    let (kind, second) = (class(first), chars.next().map(class));
    if let Some(len) = contraction(text) {
        return Some(len);
    }
    // A run of letters, with at most one character before it that is no letter, number or line
    // break.
    if kind == Class::Letter || (second == Some(Class::Letter) && !matches!(kind, Class::Newline | Class::Number)) {
        return Some(first.len_utf8() + run(&text[first.len_utf8()..], |c| c == Class::Letter));
    }
    match kind {
        Class::Letter | Class::Number => Some(first.len_utf8()),
        Class::Other => Some(symbols(text)),
        Class::Space if first == ' ' && second == Some(Class::Other) => Some(1 + symbols(&text[1..])),
        Class::Space | Class::Newline => Some(spaces(text)),
    }
}

/// `'s 't 're 've 'm 'll 'd` in any case. The long s counts as s.
fn contraction(text: &str) -> Option<usize> {
    let mut chars = text.strip_prefix('\'')?.chars();
    let first = chars.next()?;
    match first.to_ascii_lowercase() {
        's' | 't' | 'm' | 'd' | 'ſ' => Some(1 + first.len_utf8()),
        first @ ('r' | 'v' | 'l') => {
            let second = chars.next()?.to_ascii_lowercase();
            (second == if first == 'l' { 'l' } else { 'e' }).then_some(3)
        }
        _ => None,
    }
}

/// A run of symbols and the line breaks behind it.
fn symbols(text: &str) -> usize {
    let len = run(text, |c| c == Class::Other);
    len + run(&text[len..], |c| c == Class::Newline)
}

/// The length of a run of white space that makes one word. With a line break, the word ends behind
/// the last one. At the end of the text, or with one character only, the word is the whole run.
/// Otherwise the last character is left to the next word.
fn spaces(text: &str) -> usize {
    let len = run(text, |c| matches!(c, Class::Space | Class::Newline));
    let space = &text[..len];
    if let Some(at) = space.rfind(['\r', '\n']) {
        return at + 1;
    }
    let last = space.chars().next_back().map_or(0, char::len_utf8);
    if len == text.len() || len == last { len } else { len - last }
}

/// Length in bytes of the leading characters whose class is wanted.
fn run(text: &str, wanted: impl Fn(Class) -> bool) -> usize {
    text.find(|c| !wanted(class(c))).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        PreTokenizer::Qwen2.words(text).collect()
    }

    #[test]
    fn contractions_split_in_any_case_and_only_as_suffixes() {
        assert_eq!(words("I've they'RE rock'n'roll"), ["I", "'ve", " they", "'RE", " rock", "'n", "'roll"]);
        assert_eq!(words("'ſo 'l 'r'"), ["'ſ", "o", " '", "l", " '", "r", "'"]);
    }

    #[test]
    fn the_last_space_belongs_to_the_next_word() {
        assert_eq!(words("a  b   \n  c\t\td  "), ["a", " ", " b", "   \n", " ", " c", "\t", "\td", "  "]);
        assert_eq!(words("\u{a0}a \u{2003}b"), ["\u{a0}a", " ", "\u{2003}b"]);
    }

    #[test]
    fn symbols_take_line_breaks_behind_them() {
        assert_eq!(words("y!\r\n\r\n  z"), ["y", "!\r\n\r\n", " ", " z"]);
        assert_eq!(words(" !? \n\n"), [" !?", " \n\n"]);
        assert_eq!(words("(word) _snake"), ["(word", ")", " _", "snake"]);
    }

    #[test]
    fn numbers_stand_alone() {
        assert_eq!(words("x=12²"), ["x", "=", "1", "2", "²"]);
    }

    #[test]
    fn nothing_is_lost() {
        assert_eq!(words(""), [""; 0]);
        let text = "e\u{301} 世界\u{200b} \u{85}\u{2028}🚀\u{10ffff}\0";
        assert_eq!(words(text).concat(), text);
    }
}
