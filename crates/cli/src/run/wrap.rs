//! Breaks lines of streamed text between words, at the edge of the screen.

use unicode_width::UnicodeWidthChar;

const TAB: usize = 8;

/// The mark of a code block, whose lines are not broken.
const FENCE: &str = "```";

/// A text that arrives in pieces, and the place of its end on the screen.
pub struct Wrap {
    /// The columns that are filled, at least 2.
    columns: usize,
    /// The column of the cursor.
    column: usize,
    /// The last word, which moves to the next line if it grows over the edge, and its width.
    word: String,
    width: usize,
    /// The first characters of the line that are not spaces, up to the length of [`FENCE`].
    head: String,
    in_code: bool,
}

impl Wrap {
    /// For a screen of `columns`. The last column stays empty: behind it terminals differ in where
    /// the cursor is.
    pub fn new(columns: u16) -> Self {
        let columns = usize::from(columns).saturating_sub(1).max(2);
        Self { columns, column: 0, word: String::new(), width: 0, head: String::new(), in_code: false }
    }

    /// For another text on the same screen.
    pub fn fresh(self) -> Self {
        Self { columns: self.columns, column: 0, word: String::new(), width: 0, head: String::new(), in_code: false }
    }

    /// The next piece of the text with its line breaks. If a word goes over the edge and its
    /// beginning is on the screen, the beginning is erased first.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        // The part of the word that earlier pieces have shown, and where its rest begins in `out`.
        let (mut shown, mut start) = (self.width, 0);
        for c in text.chars() {
            if !c.is_whitespace() && self.head.len() < FENCE.len() {
                self.head.push(c);
            }
            let width = if c == '\t' { TAB - self.column % TAB } else { c.width().unwrap_or(0) };
            match c {
                '\n' => {
                    out.push(c);
                    self.end_line();
                }
                ' ' | '\t' => {
                    if self.in_code || self.column + width <= self.columns {
                        out.push(c);
                    }
                    self.column = (self.column + width).min(self.columns);
                    self.end_word();
                }
                _ => {
                    if !self.in_code && self.column + width > self.columns {
                        self.next_line(&mut out, width, shown, start);
                        (shown, start) = (0, out.len() - self.word.len());
                    }
                    out.push(c);
                    self.word.push(c);
                    self.width += width;
                    self.column += width;
                    // Scripts of wide characters have no spaces: a line may end behind each.
                    if width > 1 {
                        self.end_word();
                    }
                }
            }
            if self.word.is_empty() {
                (shown, start) = (0, out.len());
            }
        }
        out
    }

    /// Begins a line with the last word, or with the next character if the word fills a line.
    fn next_line(&mut self, out: &mut String, next: usize, shown: usize, start: usize) {
        if next > 1 || self.width == 0 || self.width == self.column {
            self.end_word();
        } else {
            out.truncate(start);
            if shown > 0 {
                out.push_str(&format!("\x1b[{shown}D\x1b[K"));
            }
        }
        out.push('\n');
        out.push_str(&self.word);
        self.column = self.width;
    }

    fn end_word(&mut self) {
        self.word.clear();
        self.width = 0;
    }

    fn end_line(&mut self) {
        self.in_code ^= self.head == FENCE;
        self.head.clear();
        self.end_word();
        self.column = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that a screen shows of pieces.
    fn screen(columns: u16, pieces: &[&str]) -> Vec<String> {
        let mut wrap = Wrap::new(columns);
        let mut lines = vec![String::new()];
        for piece in pieces {
            let out = wrap.push(piece);
            let mut rest = out.as_str();
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                let line = lines.last_mut().unwrap();
                match c {
                    '\n' => lines.push(String::new()),
                    '\x1b' => {
                        let (back, after) = rest[1..].split_once("D\x1b[K").unwrap();
                        let mut left: usize = back.parse().unwrap();
                        while left > 0 {
                            left -= line.pop().unwrap().width().unwrap();
                        }
                        rest = after;
                    }
                    c => line.push(c),
                }
            }
        }
        lines
    }

    #[test]
    fn lines_break_between_words_however_the_text_arrives() {
        let text = "one two three four fifteen\n\nsix";
        let expected = ["one two ", "three four ", "fifteen", "", "six"];
        assert_eq!(screen(12, &[text]), expected);
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(screen(12, &letters.iter().map(String::as_str).collect::<Vec<_>>()), expected);
        assert_eq!(screen(12, &["one tw", "o th", "re", "e four fif", "teen\n\nsix"]), expected);
    }

    #[test]
    fn a_word_that_fits_exactly_stays_and_the_space_behind_it_is_dropped() {
        assert_eq!(screen(8, &["one two ", "three"]), ["one two", "three"]);
        assert_eq!(screen(8, &["one two", "\n", "x"]), ["one two", "x"]);
        assert_eq!(screen(8, &["one two", " ", "\n", "x"]), ["one two", "x"], "no empty line");
    }

    #[test]
    fn a_word_longer_than_the_screen_breaks() {
        assert_eq!(screen(6, &["ab abcdefgh", "ijklm no"]), ["ab ", "abcde", "fghij", "klm ", "no"]);
        assert_eq!(screen(1, &["abcd"]), ["ab", "cd"], "at least two columns");
    }

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!(screen(7, &["你好世界", "好"]), ["你好世", "界好"]);
        assert_eq!(screen(7, &["ab 你好", "世"]), ["ab 你", "好世"]);
        assert_eq!(screen(6, &["abe\u{301}d ", "e\u{301}e\u{301}"]), ["abe\u{301}d ", "e\u{301}e\u{301}"]);
        assert_eq!(screen(2, &["你", "好"]), ["你", "好"]);
    }

    #[test]
    fn code_stays_as_it_is_and_text_after_it_breaks_again() {
        let code = "  let sum = one + two + three;";
        let text = format!("as in this\n```rust\n{code}\n```\nand so on and on");
        let expected = ["as in this", "```rust", code, "```", "and so on ", "and on"];
        let halves = text.split_at(17);
        assert_eq!(screen(11, &[halves.0, halves.1]), expected);
        assert_eq!(screen(11, &[&text.replace('`', "'")]).len(), 9, "only fences begin code");
    }
}
