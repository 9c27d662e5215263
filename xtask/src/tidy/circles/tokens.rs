//! Rust source as a list of tokens, without comments and literals.

/// The identifiers and punctuation of a source in order. `::` is one token. A raw identifier loses
/// its `r#`.
pub fn tokens(text: &str) -> Vec<&str> {
    let mut found = vec![];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        rest = if rest.starts_with("//") {
            &rest[rest.find('\n').unwrap_or(rest.len())..]
        } else if rest.starts_with("/*") {
            &rest[comment(rest)..]
        } else if c == '"' {
            &rest[quoted(rest, '"')..]
        } else if c == '\'' {
            &rest[quote(rest)..]
        } else if let Some(end) = prefixed(rest, word) {
            &rest[end..]
        } else if word > 0 {
            let (word, after) = rest.split_at(word);
            let raw = after.strip_prefix('#').filter(|_| word == "r");
            // A number is not a name.
            if raw.is_none() && !c.is_ascii_digit() {
                found.push(word);
            }
            raw.unwrap_or(after)
        } else {
            let (mark, after) = rest.split_at(if rest.starts_with("::") { 2 } else { c.len_utf8() });
            if !c.is_whitespace() {
                found.push(mark);
            }
            after
        };
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True if a token is an identifier or a keyword.
pub fn is_name(token: &str) -> bool {
    token.starts_with(is_word)
}

/// The end of a block comment. Comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let step = if text[at..].starts_with("/*") {
            depth += 1;
            2
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            2
        } else {
            text[at..].chars().next().map_or(1, char::len_utf8)
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The end of a literal that begins with a quotation mark and has escapes with `\`.
fn quoted(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == mark && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// The end of a character literal, or of a lifetime.
fn quote(text: &str) -> usize {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (_, Some('\'')) => quoted(text, '\''),
        _ => 1 + text[1..].find(|c: char| !is_word(c)).unwrap_or(text.len() - 1),
    }
}

/// The end of a literal with a prefix of `word` bytes, if one begins here.
fn prefixed(text: &str, word: usize) -> Option<usize> {
    let (prefix, after) = text.split_at(word);
    match prefix {
        "b" | "c" if after.starts_with('"') => Some(word + quoted(after, '"')),
        "b" if after.starts_with('\'') => Some(word + quoted(after, '\'')),
        "r" | "br" | "cr" => {
            let hashes = after.len() - after.trim_start_matches('#').len();
            let inside = after[hashes..].strip_prefix('"')?;
            let close = format!("\"{}", "#".repeat(hashes));
            let end = inside.find(&close).map_or(inside.len(), |end| end + close.len());
            Some(word + hashes + 1 + end)
        }
        _ => None,
    }
}
