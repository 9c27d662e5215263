//! Reads the lines that a user types, with editing keys and a history file.

mod keys;
#[cfg(unix)]
mod terminal;
mod typed;

use super::{commands, state};
use crate::text::colors;
use crate::{exit, interrupt};
use anyhow::{Context, Result, anyhow};
use keys::{Keys, Watch};
use rustyline::completion::Completer;
use rustyline::config::{CompletionType, Configurer};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{FileHistory, History};
use rustyline::validate::Validator;
use rustyline::{Editor, Event, EventHandler, Helper};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use typed::Typed;
pub use typed::unquoted;

/// The number of lines in the history.
const KEPT: usize = 1000;

/// The user's input at a prompt.
pub enum Line {
    /// A message or a command.
    Text(String),
    /// A message between the marks of several lines. It is no command.
    Quoted(String),
    /// Ctrl-C at an empty prompt.
    Interrupt,
    /// Ctrl-D at an empty prompt, or a closed terminal.
    End,
    /// A signal asks the program to end.
    Stop,
}

/// Lines from a thread of its own, because nothing wakes a thread that waits for keys: a signal
/// must end the chat there too.
pub struct LineEditor {
    /// Asks the thread for a line, with the text that it begins with.
    asks: SyncSender<String>,
    lines: Receiver<Result<Line>>,
    /// The terminal as it was before lines were edited.
    #[cfg(unix)]
    terminal: Option<nix::sys::termios::Termios>,
}

impl LineEditor {
    pub fn new() -> Result<Self> {
        #[cfg(unix)]
        let terminal = nix::sys::termios::tcgetattr(std::io::stdin()).ok();
        let ((asks, asked), (send, lines)) = (sync_channel(1), channel());
        let stop = send.clone();
        interrupt::told(move || drop(stop.send(Ok(Line::Stop))));
        let edit = move || {
            let mut reader = Reader::new();
            while let Ok(draft) = asked.recv() {
                let line = match &mut reader {
                    Ok(reader) => reader.read(draft),
                    Err(error) => Err(anyhow!("{error:#}")),
                };
                if send.send(line).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("lines".to_string()).spawn(edit).context("cannot read from this terminal")?;
        Ok(Self {
            asks,
            lines,
            #[cfg(unix)]
            terminal,
        })
    }

    /// Reads a line, which begins with `draft` and may be edited: also the next line if the line
    /// ends in a backslash, the lines between `"""` and `"""`, and lines that arrive at once.
    pub fn read(&mut self, draft: String) -> Result<Line> {
        if let Ok(stop) = self.lines.try_recv() {
            return stop;
        }
        self.asks.send(draft).context("cannot read from this terminal")?;
        let line = self.lines.recv().context("cannot read from this terminal")?;
        if let Ok(Line::Stop) = line {
            self.leave();
        }
        line
    }

    /// Gives the terminal back while the thread still waits for keys.
    fn leave(&self) {
        #[cfg(unix)]
        if let Some(terminal) = &self.terminal {
            use nix::sys::termios::{SetArg, tcsetattr};
            // A closed terminal needs nothing.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, terminal);
        }
        exit::say("");
    }
}

/// Edits lines on the thread.
struct Reader {
    editor: Editor<Words, FileHistory>,
    keys: Arc<Keys>,
    history: Option<PathBuf>,
    colors: bool,
    /// The lines behind a command that was pasted with them.
    rest: Option<String>,
}

/// Completes the words of commands.
struct Words;

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &rustyline::Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(commands::complete(&line[..at]))
    }
}

impl Highlighter for Words {}
impl Hinter for Words {
    type Hint = String;
}
impl Validator for Words {}
impl Helper for Words {}

impl Reader {
    fn new() -> Result<Self> {
        let keys = Arc::new(Keys::new());
        let mut editor = Editor::<Words, FileHistory>::new().context("cannot read from this terminal")?;
        editor.set_helper(Some(Words));
        editor.set_completion_type(CompletionType::List);
        editor.set_max_history_size(KEPT)?;
        editor.set_auto_add_history(false);
        editor.bind_sequence(Event::Any, EventHandler::Conditional(Box::new(Watch(Arc::clone(&keys)))));
        let history = state::history();
        if let Some(path) = &history {
            // The history file may be missing or unreadable. The chat works without it.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, keys, history, colors: colors(&std::io::stdout()), rest: None })
    }

    fn read(&mut self, mut draft: String) -> Result<Line> {
        let mut text = String::new();
        loop {
            match self.line(if text.is_empty() { "> " } else { "  " }, std::mem::take(&mut draft)) {
                Ok(line) if text.is_empty() => text = self.first(line),
                Ok(line) => text.push_str(&line),
                Err(ReadlineError::Interrupted) if text.is_empty() => return Ok(Line::Interrupt),
                Err(ReadlineError::Interrupted) => {
                    text.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => return Ok(Line::End),
                Err(error) => return Err(error).context("cannot read from this terminal"),
            }
            match Typed::of(text) {
                Typed::Open(more) => text = more,
                Typed::Whole(whole) => {
                    self.remember(&whole);
                    return Ok(Line::Text(whole));
                }
                Typed::Quoted { whole, message } => {
                    self.remember(&whole);
                    return Ok(Line::Quoted(message));
                }
            }
        }
    }

    /// A command that was pasted with other lines, without the lines behind it; else all lines.
    fn first(&mut self, mut lines: String) -> String {
        if commands::split(&lines).is_none() {
            return lines;
        }
        let mut ends = lines.match_indices('\n').map(|(at, _)| at);
        if let Some(at) = ends.find(|&at| !Typed::is_open(&lines[..at])) {
            self.rest = Some(lines.split_off(at + 1));
            lines.pop();
        }
        lines
    }

    /// Reads a line, and the lines that wait behind it.
    fn line(&mut self, prompt: &str, draft: String) -> rustyline::Result<String> {
        if let Some(rest) = self.rest.take() {
            return Ok(rest);
        }
        let styled = if self.colors { format!("\x1b[1;36m{prompt}\x1b[0m") } else { prompt.to_string() };
        let (mut left, mut right) = (draft, String::new());
        loop {
            let read = self.editor.readline_with_initial(&(prompt, styled.as_str()), (&left, &right));
            match self.keys.ran_out(&read) {
                None => return read,
                Some(paste) if paste.goes_on() => (left, right) = paste.next_line(),
                Some(paste) => return Ok(paste.line()),
            }
        }
    }

    /// Writes the history after each line, so that a killed program loses nothing.
    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || !self.editor.add_history_entry(text).unwrap_or(false) {
            return;
        }
        if let Some(path) = &self.history {
            let created = path.parent().is_none_or(|folder| std::fs::create_dir_all(folder).is_ok());
            let known = !self.editor.history().is_empty();
            if created && known {
                let _ = self.editor.append_history(path);
            }
        }
    }
}
