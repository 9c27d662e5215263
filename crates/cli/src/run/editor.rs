//! Reads the lines that a user types, with editing keys and a history file.

use crate::{exit, interrupt};
use anyhow::{Context, Result, anyhow};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{
    Cmd, ConditionalEventHandler, Editor, Event, EventContext, EventHandler, KeyEvent, Movement, RepeatCount,
};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

/// The number of lines in the history.
const KEPT: usize = 1000;

/// The user's input at a prompt.
pub enum Line {
    Text(String),
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
    /// Asks the thread for a line.
    asks: SyncSender<()>,
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
            while asked.recv().is_ok() {
                let line = match &mut reader {
                    Ok(reader) => reader.read(),
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

    /// Reads a line, and the next one too as long as the line ends in a backslash.
    pub fn read(&mut self) -> Result<Line> {
        if let Ok(stop) = self.lines.try_recv() {
            return stop;
        }
        self.asks.send(()).context("cannot read from this terminal")?;
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
    editor: Editor<(), FileHistory>,
    history: Option<PathBuf>,
}

/// Ctrl-C clears a typed line. On an empty line it is passed to the chat.
struct CtrlC;

impl ConditionalEventHandler for CtrlC {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        Some(if context.line().is_empty() { Cmd::Interrupt } else { Cmd::Kill(Movement::WholeBuffer) })
    }
}

impl Reader {
    fn new() -> Result<Self> {
        let mut editor = Editor::<(), FileHistory>::new().context("cannot read from this terminal")?;
        editor.set_max_history_size(KEPT)?;
        editor.set_auto_add_history(false);
        editor.bind_sequence(KeyEvent::ctrl('c'), EventHandler::Conditional(Box::new(CtrlC)));
        let history = history_file();
        if let Some(path) = &history {
            // The history file may be missing or unreadable. The chat works without it.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history })
    }

    fn read(&mut self) -> Result<Line> {
        let mut text = String::new();
        loop {
            match self.editor.readline(if text.is_empty() { "> " } else { "  " }) {
                Ok(line) => text.push_str(&line),
                Err(ReadlineError::Interrupted) if text.is_empty() => return Ok(Line::Interrupt),
                Err(ReadlineError::Interrupted) => {
                    text.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => return Ok(Line::End),
                Err(error) => return Err(error).context("cannot read from this terminal"),
            }
            match text.strip_suffix('\\') {
                Some(more) => text = format!("{more}\n"),
                None => break,
            }
        }
        self.remember(&text);
        Ok(Line::Text(text))
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

/// `weft/history` in the user's state folder; `None` if there is no such folder.
fn history_file() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = if cfg!(windows) {
        var("LOCALAPPDATA")
    } else {
        var("XDG_STATE_HOME").or_else(|| var("HOME").map(|home| home.join(".local/state")))
    };
    Some(state?.join("weft").join("history"))
}
