//! Text from stdin and files, and text that is safe to print to a terminal.

use crate::exit::usage;
use anyhow::{Context, Result};
use std::borrow::Cow;
use std::io::{IsTerminal, Read};
use std::path::Path;

/// All of stdin, unchanged.
pub fn stdin() -> Result<String> {
    let mut bytes = vec![];
    std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read stdin")?;
    utf8(bytes, "stdin")
}

/// The contents of a text file.
pub fn file(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    utf8(bytes, &path.display().to_string())
}

fn utf8(bytes: Vec<u8>, whence: &str) -> Result<String> {
    String::from_utf8(bytes)
        .map_err(|e| anyhow::anyhow!("{whence} is not UTF-8: invalid byte at offset {}", e.utf8_error().valid_up_to()))
}

/// The text without the one line break that shells and editors put at the end.
pub fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Replaces control characters, except line breaks and tabs, by U+FFFD. The text of a model or a
/// file must not move the cursor or change the state of the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(harmful) { Cow::Owned(text.replace(harmful, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// A number of things of this name, such as `1 step` and `2 steps`.
pub fn counted(count: u64, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// A path as a word of a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,\\".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Whether text for this end may have colors: it is a terminal that knows them, and `NO_COLOR` is
/// not set.
pub fn colors(end: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    end.is_terminal() && !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The most similar of these names, if one is similar.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = |name: &str| strsim::jaro_winkler(word, name);
    names.filter(|name| near(name) > 0.8).max_by(|a, b| near(a).total_cmp(&near(b)))
}

/// Two columns of text, one row per line. Further lines of a row stay in the second column.
pub fn columns(rows: Vec<(String, String)>) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let indent = format!("\n{:width$}  ", "");
    let row = |(name, text): &(String, String)| format!("{name:width$}  {}", text.replace('\n', &indent));
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Parses integers separated by commas, spaces or line breaks, with or without the brackets of a
/// JSON array.
pub fn ids(list: &str) -> Result<Vec<u32>> {
    let bare = list.trim();
    let bare = bare.strip_prefix('[').and_then(|b| b.strip_suffix(']')).unwrap_or(bare);
    let words = bare.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty());
    let ids =
        words.map(|w| w.parse().map_err(|_| usage(format!("\"{w}\" is not a token id; ids are integers from 0 on"))));
    ids.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_in_every_usual_spelling() {
        for list in ["1,2,3", " 1, 2, 3\n", "[1, 2,\n 3]", "1 2 3"] {
            assert_eq!(ids(list).unwrap(), [1, 2, 3], "{list:?}");
        }
        assert!(ids("[]").unwrap().is_empty());
        assert!(ids("1,-2").unwrap_err().is::<crate::exit::Usage>());
        assert!(ids("4294967296").is_err());
    }

    #[test]
    fn a_path_in_a_command_is_one_word() {
        let words = ["a/b-1.gguf", "my facts", "it's"].map(|text| quoted(Path::new(text)));
        assert_eq!(words, ["a/b-1.gguf", "'my facts'", "'it'\\''s'"]);
    }

    #[test]
    fn the_nearest_name_is_similar_or_none() {
        let names = || ["reset", "retry", "save", "set"].into_iter();
        assert_eq!(nearest("rest", names()), Some("reset"));
        assert_eq!(nearest("sav", names()), Some("save"));
        assert_eq!(nearest("x", names()), None);
    }

    #[test]
    fn rows_are_aligned_also_where_they_have_several_lines() {
        let rows = [("a", "one\ntwo"), ("long", "three")].map(|(name, text)| (name.to_string(), text.to_string()));
        assert_eq!(columns(rows.to_vec()), "a     one\n      two\nlong  three");
    }

    #[test]
    fn only_one_line_end_is_taken() {
        assert_eq!(without_line_end("a\r\n"), "a");
        assert_eq!(without_line_end("a\n\n"), "a\n");
    }

    #[test]
    fn escape_sequences_do_not_reach_a_terminal() {
        assert_eq!(printable("a\n\tb"), "a\n\tb");
        assert_eq!(printable("\u{1b}]0;x\u{7}\u{9b}\r"), "\u{fffd}]0;x\u{fffd}\u{fffd}\u{fffd}");
    }
}
