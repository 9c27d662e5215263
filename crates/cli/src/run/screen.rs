//! Prints an answer: text and tool calls to stdout, thinking to stderr.

use super::answer::Answer;
use super::talk::Talk;
use super::tools;
use crate::exit::note;
use crate::text::printable;
use anyhow::Result;
use model::chat::{Event, Message};
use std::io::{self, IsTerminal, Write};

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Prints the parts of an answer.
pub struct Screen {
    out: io::Stdout,
    terminal: bool,
    /// Whether thinking is dimmed: at a terminal, unless `NO_COLOR` is set.
    dims: bool,
    /// Whether the last shown part was thinking.
    thinking: bool,
    /// Whether anything was printed to stdout, and whether it ended with a line break.
    shown: bool,
    ended: bool,
    reasons: Vec<String>,
}

impl Screen {
    pub fn new() -> Self {
        let (out, plain) = (io::stdout(), std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()));
        let (terminal, dims) = (out.is_terminal(), io::stderr().is_terminal() && !plain);
        Self { out, terminal, dims, thinking: false, shown: false, ended: true, reasons: vec![] }
    }

    /// Prints one part of the answer.
    pub fn show(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Thinking(text) => self.think(text),
            Event::Text(text) => self.print(text),
            Event::Malformed { text, reason } => {
                self.reasons.push(reason.clone());
                self.print(text)
            }
            Event::ToolCall(call) => {
                let line = format!("{}{}\n", if self.ended { "" } else { "\n" }, tools::json(call));
                self.print(&line)
            }
        }
    }

    /// Ends the line, and prints a note for each tool call that could not be parsed.
    pub fn end(&mut self, good: bool) -> io::Result<()> {
        self.stop_thinking()?;
        if !self.ended || (good && !self.shown) {
            writeln!(self.out)?;
        }
        for reason in &self.reasons {
            note(&format!("a tool call cannot be parsed and is shown as text: {reason}"));
        }
        Ok(())
    }

    fn think(&mut self, text: &str) -> io::Result<()> {
        let mut err = io::stderr();
        if !self.thinking {
            self.thinking = true;
            write!(err, "{}", if self.dims { DIM } else { "" })?;
        }
        write!(err, "{}", if self.dims { printable(text) } else { text.into() })?;
        err.flush()
    }

    fn stop_thinking(&mut self) -> io::Result<()> {
        if self.thinking {
            self.thinking = false;
            writeln!(io::stderr(), "{}\n", if self.dims { PLAIN } else { "" })?;
        }
        Ok(())
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        self.stop_thinking()?;
        (self.shown, self.ended) = (true, text.ends_with('\n'));
        let shown = if self.terminal { printable(text) } else { text.into() };
        self.out.write_all(shown.as_bytes())?;
        self.out.flush()
    }
}

impl Talk {
    /// Prints the answer to stdout token by token, and ends the line.
    pub fn show(&mut self, message: Message) -> Result<Answer> {
        let (mut screen, dropped) = (Screen::new(), self.session.dropped());
        let answer = self.answer(message, &mut |event| screen.show(event));
        screen.end(answer.is_ok())?;
        self.tell_shift(dropped);
        answer
    }
}
