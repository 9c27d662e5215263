//! Cuts a text into documents.

use super::lines::LINE_BYTES;
use super::texts::Texts;
use model::tokenizer::Special;

/// Bytes of text that are read ahead for a document: more than most tokens have.
pub(super) fn window(length: u32) -> usize {
    (length as usize).saturating_mul(8).clamp(64, LINE_BYTES)
}

impl Texts {
    /// Bytes of the first document of a text: up to the last line, else the last word, else the
    /// last character with which it has at most `length` tokens. `None` if all of `text` has fewer
    /// tokens and `ends` is false, so that more of the text is needed.
    pub(super) fn first(&self, text: &str, length: u32, ends: bool) -> Result<Option<usize>, String> {
        let (length, mut end) = (length as usize, text.len());
        loop {
            let ids = self.tokenizer.encode_prompt(&text[..end], Special::Parse).map_err(|error| error.to_string())?;
            if ids.len() <= length {
                return Ok((ends || end < text.len()).then_some(end));
            }
            // Normalization may change the number of bytes, so that this is a guess. Each guess
            // leaves out an eighth at least, so that there are few.
            let bytes = ids[..length].iter().map(|&id| self.tokenizer.token_bytes(id).len()).sum::<usize>();
            let shorter = border(text, bytes.min(end - end.div_ceil(8)));
            if shorter == 0 {
                return Ok(Some(end));
            }
            end = shorter;
        }
    }
}

/// A good byte offset to cut at, in the second half of `most` bytes: behind a line, else before a
/// space, else behind a character. 0 if not even one character has room.
fn border(text: &str, most: usize) -> usize {
    let most = (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let half = text[..most].char_indices().rev().take_while(|(at, _)| 2 * at >= most);
    let line = half.clone().find(|(_, c)| *c == '\n').map(|(at, _)| at + 1);
    let word = || half.clone().find(|(at, c)| c.is_whitespace() && *at > 0).map(|(at, _)| at);
    line.or_else(word).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::border;

    #[test]
    fn lines_go_before_words_and_words_before_characters() {
        assert_eq!(border("one two three\nfo ur", 18), 14);
        assert_eq!(border("one two three", 10), 7);
        assert_eq!(border("one\ntwothreefour", 12), 12, "a line that is too short");
        assert_eq!(border("wörter", 2), 1);
        assert_eq!(border("ö", 1), 0);
    }
}
