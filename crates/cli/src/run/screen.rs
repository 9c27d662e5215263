//! An answer as people see it: text and calls on stdout, thinking on stderr.

use super::tools;
use crate::exit::note;
use crate::text::printable;
use model::chat::Event;
use std::io::{self, IsTerminal, Write};

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Where an answer appears.
pub struct Screen {
    out: io::Stdout,
    terminal: bool,
    /// Whether thinking is dimmed: at a terminal, unless `NO_COLOR` is set.
    dims: bool,
    /// Whether the last that was shown is a thought.
    thinking: bool,
    /// Whether stdout has something, and whether that ends with a line break.
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

    /// Shows what came.
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

    /// Ends the line, and says which calls could not be read.
    pub fn end(&mut self, good: bool) -> io::Result<()> {
        self.stop_thinking()?;
        if !self.ended || (good && !self.shown) {
            writeln!(self.out)?;
        }
        for reason in &self.reasons {
            note(&format!("a call of a tool cannot be read and is shown as text: {reason}"));
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
