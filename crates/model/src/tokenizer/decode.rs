//! Streaming decode: text as soon as it is whole, never half a character.

use super::Tokenizer;

/// What a decoder does with control tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Writes their names, as [`Tokenizer::decode`] does.
    Show,
    /// Leaves them out, for text that people read.
    Hide,
}

/// Turns ids into text one at a time. All that it returns, end to end, is what [`Tokenizer::decode`] gives for the same ids
/// (without the control tokens, where those are hidden).
#[derive(Clone, Debug)]
pub struct Decoder {
    control: Control,
    /// Control tokens that show themselves although others are hidden, ascending.
    shown: Vec<u32>,
    opens: bool,
    /// The beginning of a character; at most three bytes between calls.
    pending: Vec<u8>,
    text: String,
}

impl Decoder {
    /// A decoder at the start of a text.
    pub fn new(control: Control) -> Self {
        Decoder { control, shown: Vec::new(), opens: true, pending: Vec::new(), text: String::new() }
    }

    /// A decoder that hides control tokens but for these.
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

    /// What is left at the end: U+FFFD for a character that never became whole. The decoder is then at the start again.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        self.flush(true);
        self.opens = true;
        &self.text
    }

    /// Moves whole characters, and U+FFFD for bytes that can never become one, from `pending` to `text`.
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

/// Whether more bytes could make a character of these.
fn is_prefix(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
