//! Texts as Python takes them apart. Every function is linear in what it reads, and a test counts
//! the characters that it touches.

use std::collections::HashSet;

use minijinja::value::{Kwargs, from_args};
use minijinja::{Error, Value};

use super::refusal::invalid;

#[cfg(test)]
thread_local! {
    /// Characters and elements that our callables have touched in this thread.
    pub(super) static TOUCHED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts characters or elements that a callable of ours touches. Only tests keep the count.
pub(super) fn touch(count: usize) {
    #[cfg(test)]
    TOUCHED.set(TOUCHED.get() + count as u64);
    let _ = count;
}

/// The characters of `text`, each of which counts.
pub(super) fn chars(text: &str) -> impl DoubleEndedIterator<Item = char> {
    text.chars().inspect(|_| touch(1))
}

/// `text` for a function of the standard library that reads all of it once.
pub(super) fn read(text: &str) -> &str {
    touch(text.len());
    text
}

/// `str.isspace` of one character. Rust does not count U+001C to U+001F.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// `is_space` that counts its character.
fn space(c: char) -> bool {
    touch(1);
    is_space(c)
}

/// Where padding goes, or what is stripped.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Side {
    Left,
    Right,
    Both,
}

/// `str.strip`, `lstrip` and `rstrip`: takes away white space, or the characters of `of`.
pub(super) fn strip<'t>(text: &'t str, side: Side, of: Option<&str>) -> &'t str {
    let set: Option<HashSet<char>> = of.map(|of| chars(of).collect());
    let taken = |c: char| {
        touch(1);
        set.as_ref().map_or_else(|| is_space(c), |set| set.contains(&c))
    };
    let text = if side == Side::Right { text } else { text.trim_start_matches(taken) };
    if side == Side::Left { text } else { text.trim_end_matches(taken) }
}

/// `text` with at least `width` characters. An odd space goes to the side where Python puts it.
pub(super) fn padded(text: &str, width: i64, fill: char, side: Side) -> String {
    let width = usize::try_from(width).unwrap_or(0);
    let missing = width.saturating_sub(chars(text).count());
    let left = match side {
        Side::Left => missing,
        Side::Right => 0,
        Side::Both => missing / 2 + (missing & width & 1),
    };
    let fill = |count: usize| std::iter::repeat_n(fill, count);
    fill(left).chain(chars(text)).chain(fill(missing - left)).collect()
}

/// `str.title`: a letter behind another letter is small, every other letter is a capital.
pub(super) fn title(text: &str) -> String {
    let cased = |c: char| c.is_lowercase() || c.is_uppercase();
    let (mut out, mut within) = (String::with_capacity(text.len()), false);
    for c in chars(text) {
        if within {
            out.extend(c.to_lowercase());
        } else {
            // The capital of some letters is two letters, of which only the first is large.
            let mut capital = c.to_uppercase();
            out.extend(capital.next());
            out.extend(capital.flat_map(char::to_lowercase));
        }
        within = cased(c);
    }
    out
}

/// `str.split` and `str.rsplit`.
pub(super) fn split(text: &str, from_end: bool, args: &[Value]) -> Result<Value, Error> {
    let (separator, most, kwargs): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = separator.map_or_else(|| kwargs.get::<Option<Value>>("sep"), |value| Ok(Some(value)))?;
    let most = most.map_or_else(|| kwargs.get::<Option<i64>>("maxsplit"), |most| Ok(Some(most)))?;
    kwargs.assert_all_used()?;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX - 1);
    let separator = separator.filter(|value| !value.is_none());
    let parts: Vec<&str> =
        match separator.as_ref().map(|value| value.as_str().ok_or_else(|| invalid("the separator is no text"))) {
            Some(separator) => {
                let (separator, text) = (separator?, read(text));
                if separator.is_empty() {
                    return Err(invalid("empty separator"));
                }
                if from_end {
                    reversed(text.rsplitn(most + 1, separator).collect())
                } else {
                    text.splitn(most + 1, separator).collect()
                }
            }
            None => words(text, most, from_end),
        };
    Ok(parts.into_iter().map(Value::from).collect())
}

fn reversed(mut parts: Vec<&str>) -> Vec<&str> {
    parts.reverse();
    parts
}

/// The words between white space; the rest after `most` cuts keeps its own white space inside.
fn words(text: &str, most: usize, from_end: bool) -> Vec<&str> {
    let trim = |text| strip(text, if from_end { Side::Right } else { Side::Left }, None);
    let (mut parts, mut rest) = (vec![], trim(text));
    while !rest.is_empty() {
        let cut = match from_end {
            _ if parts.len() == most => None,
            true => rest.rfind(space).map(|at| at + rest[at..].chars().next().map_or(1, char::len_utf8)),
            false => rest.find(space),
        };
        let Some(at) = cut else {
            parts.push(rest);
            break;
        };
        let (word, others) = if from_end { (&rest[at..], &rest[..at]) } else { (&rest[..at], &rest[at..]) };
        parts.push(word);
        rest = trim(others);
    }
    if from_end { reversed(parts) } else { parts }
}

/// `str.splitlines`: the lines, with their ends or without.
pub(super) fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let (mut out, mut rest) = (vec![], text);
    let ends = |c: char| {
        touch(1);
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    while let Some(at) = rest.find(ends) {
        let end =
            at + if rest[at..].starts_with("\r\n") { 2 } else { rest[at..].chars().next().map_or(1, char::len_utf8) };
        out.push(&rest[..if keep_ends { end } else { at }]);
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        out.push(rest);
    }
    out
}

/// The part of `text` that Python's `find`, `index` and `count` look at, and the number of
/// characters before it; `None` where the part would end before it begins.
pub(super) fn window(text: &str, start: Option<i64>, end: Option<i64>) -> Option<(&str, usize)> {
    if start.is_none() && end.is_none() {
        return Some((text, 0));
    }
    let length = chars(text).count();
    let place = |at: i64| {
        usize::try_from(at)
            .unwrap_or_else(|_| length.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(length)))
    };
    let (start, end) = (place(start.unwrap_or(0)), end.map_or(length, place).min(length));
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    (start <= end).then(|| (&text[byte(start)..byte(end)], start))
}

/// `str.find` and `str.rfind`: the number of characters before the match.
pub(super) fn find(text: &str, what: &str, last: bool, start: Option<i64>, end: Option<i64>) -> Option<usize> {
    let (part, before) = window(text, start, end)?;
    let part = read(part);
    let at = if last { part.rfind(what) } else { part.find(what) }?;
    Some(before + chars(&part[..at]).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_that_of_python() {
        let ours: Vec<u32> = ('\0'..=char::MAX).filter(|&c| is_space(c)).map(u32::from).collect();
        // [n for n in range(0x110000) if chr(n).isspace()]
        let python = [
            0x9, 0xa, 0xb, 0xc, 0xd, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003,
            0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000,
        ];
        assert_eq!(ours, python);
    }
}
