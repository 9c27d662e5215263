//! Numbers that the engine would compute with while it compiles.
//!
//! The engine folds constants by its own operators, before anything of ours stands between: `1e-7 ~
//! 'a'` would print the float as Rust does, and `7 % -3` would be 1. In a tag where the result
//! would differ from Python's, each number goes through the filter `int` or `float`, which gives it
//! back unchanged. A filter's result is no constant, so the tag is computed when it is rendered.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// A number of the tag, as bytes of the source, with its filter.
type Number = (std::ops::Range<usize>, &'static str);

/// `source` without constants that differ from Python's.
pub(super) fn unfolded(source: String, syntax: &SyntaxConfig) -> String {
    if !source.contains(['~', '%']) {
        return source;
    }
    let (mut numbers, mut tag) = (vec![], Tag::default());
    for token in tokenize(&source, false, syntax.clone()) {
        // The parser meets the same error, and says where it is.
        let Ok((token, span)) = token else { break };
        let place = span.start_offset as usize..span.end_offset as usize;
        match token {
            Token::VariableStart | Token::BlockStart => tag = Tag::default(),
            Token::VariableEnd | Token::BlockEnd => numbers.extend(std::mem::take(&mut tag).differing()),
            Token::Int(_) | Token::Int128(_) => tag.numbers.push((place, "int")),
            Token::Float(_) => {
                tag.numbers.push((place, "float"));
                tag.floats = true;
            }
            Token::Div | Token::Pow => tag.floats = true,
            Token::Tilde => tag.joins = true,
            Token::Mod => tag.remainders |= tag.constant,
            _ => {}
        }
        tag.constant = matches!(token, Token::Int(_) | Token::Int128(_) | Token::Float(_) | Token::ParenClose);
    }
    let mut out = source;
    for (place, filter) in numbers.into_iter().rev() {
        let number = format!("({} | {filter})", &out[place.clone()]);
        out.replace_range(place, &number);
    }
    out
}

#[derive(Default)]
struct Tag {
    numbers: Vec<Number>,
    /// Whether a float stands here or may be computed.
    floats: bool,
    /// Whether values are joined to text.
    joins: bool,
    /// Whether there is a remainder of what may be a constant.
    remainders: bool,
    /// Whether the last token may end a constant.
    constant: bool,
}

impl Tag {
    fn differing(self) -> Vec<Number> {
        if self.joins && self.floats || self.remainders { self.numbers } else { vec![] }
    }
}
