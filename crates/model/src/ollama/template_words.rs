//! Go's template language cut into pieces and words.

use super::template::Piece;

/// A word between braces.
#[derive(Debug, PartialEq)]
pub(super) enum Word {
    /// A keyword or a function.
    Name(String),
    /// `.A.B`, without the first dot; empty for `.` itself.
    Field(String),
    /// `$a.B`, without the dollar sign.
    Variable(String),
    Text(String),
    Number(String),
    Open,
    Close,
    Pipe,
    Comma,
    /// `:=` or `=`.
    Assign,
}

/// Text and actions in turn, white space taken away where `{{-` and `-}}` say so. Comments are
/// empty actions.
pub(super) fn actions(go: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut rest, mut trims) = (vec![], go, false);
    loop {
        let (text, action) = rest.split_once("{{").map_or((rest, None), |(text, action)| (text, Some(action)));
        let text = if trims { text.trim_start() } else { text };
        let Some(action) = action else {
            pieces.push(Piece::Text(text.to_string()));
            return Ok(pieces);
        };
        let opens = action.strip_prefix('-').filter(|code| code.starts_with(char::is_whitespace));
        pieces.push(Piece::Text(if opens.is_some() { text.trim_end() } else { text }.to_string()));
        let action = opens.unwrap_or(action);
        let end = end(action).ok_or("{{ has no }}")?;
        let code = &action[..end];
        let closes = code.strip_suffix('-').filter(|code| code.ends_with(char::is_whitespace));
        trims = closes.is_some();
        let code = closes.unwrap_or(code).trim();
        let comment = code.starts_with("/*") && code.ends_with("*/");
        pieces.push(Piece::Action(if comment { String::new() } else { code.to_string() }));
        rest = &action[end + 2..];
    }
}

/// Where `}}` stands outside quotation marks.
fn end(code: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in code.char_indices() {
        match quote {
            None if code[at..].starts_with("}}") => return Some(at),
            None => quote = Some(c).filter(|c| matches!(c, '"' | '`')),
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
        }
    }
    None
}

/// The words of an action.
pub(super) fn words(code: &str) -> Result<Vec<Word>, String> {
    let (mut words, mut rest) = (vec![], code.trim_start());
    while let Some(first) = rest.chars().next() {
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let run = |text: &str| text.find(|c| !part(c)).unwrap_or(text.len());
        let (word, len) = match first {
            '(' => (Word::Open, 1),
            ')' => (Word::Close, 1),
            '|' => (Word::Pipe, 1),
            ',' => (Word::Comma, 1),
            '=' => (Word::Assign, 1),
            ':' if rest.starts_with(":=") => (Word::Assign, 2),
            '"' => {
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let text = values
                    .next()
                    .and_then(Result::ok)
                    .ok_or_else(|| format!("a text in {{{{ {code} }}}} cannot be read"))?;
                (Word::Text(text), values.byte_offset())
            }
            '`' => {
                let end = rest[1..].find('`').ok_or_else(|| format!("a text in {{{{ {code} }}}} has no end"))?;
                (Word::Text(rest[1..=end].to_string()), end + 2)
            }
            '.' => (Word::Field(rest[1..run(rest)].to_string()), run(rest)),
            '$' => (Word::Variable(rest[1..1 + run(&rest[1..])].to_string()), 1 + run(&rest[1..])),
            '0'..='9' if run(rest) < 10 && rest[..run(rest)].bytes().all(|c| c.is_ascii_digit()) => {
                (Word::Number(rest[..run(rest)].to_string()), run(rest))
            }
            c if c.is_alphabetic() => (Word::Name(rest[..run(rest)].to_string()), run(rest)),
            c => return Err(format!("\"{}\" in {{{{ {code} }}}} is not understood", c.escape_debug())),
        };
        words.push(word);
        rest = rest[len..].trim_start();
    }
    let sound = |text: &str| text.split('.').all(|part| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    let names = words.iter().filter_map(|word| if let Word::Variable(name) = word { Some(name) } else { None });
    if names.clone().any(|name| !sound(name)) {
        return Err(format!("{{{{ {code} }}}} is not understood"));
    }
    Ok(words)
}
