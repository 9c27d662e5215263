//! Keys that arrive faster than anyone types: a text that a terminal pastes without brackets around
//! it. Its lines are one message.
//!
//! rustyline reads up to a kilobyte of keys at once, and nothing tells how many of them it still
//! has. So an Enter that comes at once after another key is a line break for now, and reading does
//! not block until the next key is there. If none is there, reading fails with `WouldBlock`, and
//! the Enter ends the message after all.

use rustyline::error::ReadlineError;
use rustyline::{
    Cmd, ConditionalEventHandler, Event, EventContext, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest time between two keys of a paste. Fingers take longer.
const BURST: Duration = Duration::from_millis(20);

/// The keys that were pressed.
pub struct Keys {
    state: Mutex<State>,
    #[cfg(unix)]
    terminal: Option<super::terminal::Own>,
}

#[derive(Default)]
struct State {
    last: Option<Instant>,
    /// The text around an Enter that is the last key so far of a paste.
    entered: Option<Paste>,
}

/// A pasted text up to the end of a line.
#[derive(Clone)]
pub struct Paste {
    left: String,
    right: String,
}

impl Paste {
    /// Whether more of it arrives.
    pub fn goes_on(&self) -> bool {
        #[cfg(unix)]
        return super::terminal::waits();
        #[cfg(not(unix))]
        false
    }

    /// The text that Enter accepts.
    pub fn line(self) -> String {
        self.left + &self.right
    }

    /// The text on both sides of the cursor, with a line break where Enter was pressed.
    pub fn next_line(self) -> (String, String) {
        (self.left + "\n", self.right)
    }
}

impl Keys {
    /// Prepares the terminal.
    pub fn new() -> Self {
        Self {
            state: Mutex::default(),
            #[cfg(unix)]
            terminal: super::terminal::Own::new(),
        }
    }

    /// The text if reading ended because no key followed an Enter.
    pub fn ran_out(&self, read: &rustyline::Result<String>) -> Option<Paste> {
        let entered = self.state.lock().unwrap_or_else(PoisonError::into_inner).entered.take()?;
        self.block(true);
        match read {
            Err(ReadlineError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => Some(entered),
            _ => None,
        }
    }

    /// Sets whether reading waits for keys. Returns whether that is possible.
    fn block(&self, blocks: bool) -> bool {
        #[cfg(unix)]
        return self.terminal.as_ref().is_some_and(|terminal| terminal.block(blocks));
        #[cfg(not(unix))]
        !blocks
    }
}

/// Sees every key before it has its effect.
pub struct Watch(pub Arc<Keys>);

impl ConditionalEventHandler for Watch {
    fn handle(&self, event: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let KeyEvent(code, modifiers) = event.get(0).copied()?;
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let quick = state.last.replace(now).is_some_and(|last| now - last < BURST);
        if state.entered.take().is_some() {
            self.0.block(true);
        }
        let (line, at) = (context.line(), context.pos());
        match (code, modifiers) {
            // Ctrl-C clears a typed line. On an empty line it is passed to the chat.
            (KeyCode::Char('C'), Modifiers::CTRL) if line.is_empty() => Some(Cmd::Interrupt),
            (KeyCode::Char('C'), Modifiers::CTRL) => Some(Cmd::Kill(Movement::WholeBuffer)),
            (KeyCode::Tab, Modifiers::NONE) | (KeyCode::Char('I'), Modifiers::CTRL) if quick => {
                Some(Cmd::SelfInsert(1, '\t'))
            }
            (KeyCode::Enter, Modifiers::NONE) | (KeyCode::Char('J' | 'M'), Modifiers::CTRL)
                if quick && self.0.block(false) =>
            {
                state.entered = Some(Paste { left: line[..at].to_string(), right: line[at..].to_string() });
                Some(Cmd::Newline)
            }
            _ => None,
        }
    }
}
