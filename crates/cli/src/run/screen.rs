//! Prints an answer: text and tool calls to stdout, thinking to stderr.

use super::answer::Answer;
use super::talk::Talk;
use super::tools;
use super::wrap::Wrap;
use crate::exit::note;
use crate::text::{colors, printable};
use anyhow::Result;
use model::chat::{Event, Message};
use std::io::{self, IsTerminal, Write};
use terminal_size::{Width, terminal_size_of};

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Prints the parts of an answer.
pub struct Screen {
    out: io::Stdout,
    terminal: bool,
    /// Whether thinking is dimmed: at a terminal, unless `NO_COLOR` is set.
    dims: bool,
    /// Break the lines of the answer and of the thinking, each if it goes to a terminal.
    answer: Option<Wrap>,
    thoughts: Option<Wrap>,
    /// Whether the last shown part was thinking.
    thinking: bool,
    /// Whether anything was printed to stdout, and whether it ended with a line break.
    shown: bool,
    ended: bool,
    reasons: Vec<String>,
}

impl Screen {
    /// Prints to stdout and stderr. `wraps` breaks lines between words.
    pub fn new(wraps: bool) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let wrap = |(Width(columns), _)| Wrap::new(columns);
        Self {
            terminal: out.is_terminal(),
            dims: colors(&err),
            answer: terminal_size_of(&out).filter(|_| wraps).map(wrap),
            thoughts: terminal_size_of(&err).filter(|_| wraps).map(wrap),
            out,
            thinking: false,
            shown: false,
            ended: true,
            reasons: vec![],
        }
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
                // A line of JSON stays whole.
                let wrap = self.answer.take();
                let printed = self.print(&line);
                self.answer = wrap.map(Wrap::fresh);
                printed
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
        let text = if err.is_terminal() { printable(text) } else { text.into() };
        match &mut self.thoughts {
            Some(wrap) => write!(err, "{}", wrap.push(&text))?,
            None => write!(err, "{text}")?,
        }
        err.flush()
    }

    fn stop_thinking(&mut self) -> io::Result<()> {
        if self.thinking {
            self.thinking = false;
            writeln!(io::stderr(), "{}\n", if self.dims { PLAIN } else { "" })?;
            self.thoughts = self.thoughts.take().map(Wrap::fresh);
        }
        Ok(())
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        self.stop_thinking()?;
        (self.shown, self.ended) = (true, text.ends_with('\n'));
        let text = if self.terminal { printable(text) } else { text.into() };
        match &mut self.answer {
            Some(wrap) => self.out.write_all(wrap.push(&text).as_bytes())?,
            None => self.out.write_all(text.as_bytes())?,
        }
        self.out.flush()
    }
}

impl Talk {
    /// Prints the answer to stdout token by token, and ends the line.
    pub fn show(&mut self, message: Message) -> Result<Answer> {
        let (mut screen, dropped) = (Screen::new(self.wraps), self.session.dropped());
        let answer = self.answer(message, &mut |event| screen.show(event));
        screen.end(answer.is_ok())?;
        self.tell_shift(dropped);
        answer
    }

    /// Prints the answer to a message that takes the place of the turns from index `at` on. After
    /// an error these turns stay.
    pub fn show_at(&mut self, at: usize, message: Message) -> Result<Answer> {
        let replaced = self.messages.split_off(at.min(self.messages.len()));
        let answer = self.show(message);
        if answer.is_err() {
            self.messages.extend(replaced);
        }
        answer
    }
}
