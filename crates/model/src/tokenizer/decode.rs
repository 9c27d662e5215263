//! Streaming decode: returns text as soon as its characters are complete.

use super::Tokenizer;

/// How a decoder treats control tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Writes their names, as [`Tokenizer::decode`] does.
    Show,
    /// Leaves them out, for text shown to people.
    Hide,
}

/// Turns ids into text one at a time. The returned texts together equal [`Tokenizer::decode`] of
/// the same ids, without hidden control tokens.
#[derive(Clone, Debug)]
pub struct Decoder {
    control: Control,
    /// Control tokens that are shown although the others are hidden, ascending.
    shown: Vec<u32>,
    opens: bool,
    /// The bytes of an incomplete character; at most three between calls.
    pending: Vec<u8>,
    text: String,
}

impl Decoder {
    /// A decoder at the start of a text.
    pub fn new(control: Control) -> Self {
        Decoder { control, shown: Vec::new(), opens: true, pending: Vec::new(), text: String::new() }
    }

    /// A decoder that hides all control tokens except these.
    pub fn showing(ids: impl IntoIterator<Item = u32>) -> Self {
        let mut shown: Vec<u32> = ids.into_iter().collect();
        shown.sort_unstable();
        Decoder { shown, ..Self::new(Control::Hide) }
    }

    /// The text that `id` completes; empty while a character is incomplete.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> &str {
        self.text.clear();
        let hides = self.control == Control::Hide && self.shown.binary_search(&id).is_err();
        let hidden = hides && tokenizer.kind(id).is_some_and(|kind| kind.is_control());
        let bytes = if hidden { &[] } else { tokenizer.token_bytes(id) };
        let stripped = bytes.strip_prefix(b" ").filter(|_| self.opens && tokenizer.strips_space());
        self.opens &= bytes.is_empty();
        self.pending.extend_from_slice(stripped.unwrap_or(bytes));
        self.flush(false);
        &self.text
    }

    /// The rest of the text at the end: U+FFFD for an incomplete character. The decoder is then at
    /// the start of a text again.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        self.flush(true);
        self.opens = true;
        &self.text
    }

    /// Moves complete characters from `pending` to `text`. Bytes that can never become a character
    /// become U+FFFD.
    fn flush(&mut self, end: bool) {
        let mut used = 0;
        for chunk in self.pending.utf8_chunks() {
            self.text.push_str(chunk.valid());
            used += chunk.valid().len();
            let rest = chunk.invalid();
            let waits = !end && used + rest.len() == self.pending.len() && is_prefix(rest);
            if !rest.is_empty() && !waits {
                self.text.push(char::REPLACEMENT_CHARACTER);
                used += rest.len();
            }
        }
        self.pending.drain(..used);
    }
}

/// Whether `bytes` could become a character with more bytes.
fn is_prefix(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
