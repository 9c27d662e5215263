//! Messages of several lines: between `"""` and `"""`, or with a backslash at the ends of lines.

/// The mark that begins and ends a message of several lines.
const QUOTES: &str = "\"\"\"";

/// What was typed.
#[derive(Debug, PartialEq)]
pub enum Typed {
    /// More lines follow: the text that they continue.
    Open(String),
    /// A message or a command.
    Whole(String),
    /// A message between marks, and the text with its marks.
    Quoted { whole: String, message: String },
}

impl Typed {
    /// Whether a line opens a text of several lines.
    pub fn is_open(line: &str) -> bool {
        matches!(Self::of(line.to_string()), Self::Open(_))
    }

    /// What the lines so far are.
    pub fn of(text: String) -> Self {
        if let Some(quoted) = text.trim_start().strip_prefix(QUOTES) {
            let Some(inner) = quoted.trim_end().strip_suffix(QUOTES) else { return Self::Open(text + "\n") };
            let inner = inner.strip_prefix('\n').unwrap_or(inner);
            let message = inner.strip_suffix('\n').unwrap_or(inner).to_string();
            return Self::Quoted { message, whole: text };
        }
        if text.starts_with('/') && text.matches(QUOTES).count() == 1 {
            return Self::Open(text + "\n");
        }
        match text.strip_suffix('\\') {
            Some(more) => Self::Open(format!("{more}\n")),
            None => Self::Whole(text),
        }
    }
}

/// The text of a command without the marks of several lines around it.
pub fn unquoted(text: &str) -> &str {
    text.strip_prefix(QUOTES).and_then(|rest| rest.strip_suffix(QUOTES)).map_or(text, |inner| inner.trim_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types lines until the message is whole.
    fn typed(lines: &[&str]) -> Typed {
        let mut text = String::new();
        for line in lines {
            match Typed::of(text + line) {
                Typed::Open(more) => text = more,
                whole => return whole,
            }
        }
        Typed::Open(text)
    }

    #[test]
    fn quotes_hold_lines_together() {
        for lines in [
            &["\"\"\"", "one", " two\\", "\"\"\""][..],
            &["\"\"\"one", " two\\\"\"\""],
            &[" \"\"\"one", " two\\", "\"\"\" "],
            &["\"\"\"one\n two\\\"\"\""],
        ] {
            let Typed::Quoted { message, .. } = typed(lines) else { panic!("{lines:?}") };
            assert_eq!(message, "one\n two\\", "{lines:?}");
        }
        let Typed::Quoted { message, .. } = typed(&["\"\"\"/help\"\"\""]) else { panic!() };
        assert_eq!(message, "/help");
        assert_eq!(typed(&["\"\"\"", "one"]), Typed::Open("\"\"\"\none\n".to_string()));
        assert_eq!(typed(&["say \"\"\"", "one"]), Typed::Whole("say \"\"\"".to_string()));
    }

    #[test]
    fn a_command_may_quote_too_and_a_backslash_joins_lines() {
        let Typed::Whole(text) = typed(&["/set system \"\"\"one", "two\"\"\""]) else { panic!() };
        assert_eq!(text, "/set system \"\"\"one\ntwo\"\"\"");
        assert_eq!(unquoted("\"\"\"one\ntwo\"\"\""), "one\ntwo");
        assert_eq!(unquoted("one"), "one");
        assert_eq!(typed(&["one\\", "two"]), Typed::Whole("one\ntwo".to_string()));
    }
}
