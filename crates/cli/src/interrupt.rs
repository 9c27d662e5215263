//! Signals that end the program: Ctrl-C, SIGTERM, SIGHUP. A [`Guard`] or [`told`] asks that the
//! first signal ends only the running work, so that its state can be saved.
//!
//! On Unix the signals are blocked in every thread, and one thread waits for them. The only
//! `unsafe` code asks whether SIGHUP is ignored, as `nohup` does it. Elsewhere there are Ctrl-C and
//! Ctrl-Break.

use anyhow::{Context, Result};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A signal that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "other systems have Ctrl-C alone"))]
pub enum Signal {
    /// SIGHUP: the terminal was closed, or the connection was lost.
    HangUp,
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: docker, Slurm, systemd and `kill` send it.
    Terminate,
}

impl Signal {
    /// The exit code after the signal, by the shells' convention: 128 plus the signal's number.
    fn code(self) -> u8 {
        match self {
            Self::HangUp => 129,
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// Calls for the end of the program.
type Listener = Box<dyn Fn() + Send>;

struct State {
    /// Stops the running work.
    flag: Option<Arc<AtomicBool>>,
    /// Is told that the program should end.
    listener: Option<Listener>,
    /// The signal since the guard was made.
    raised: Option<Signal>,
    /// The signal that the whole program, not only the running work, should end for.
    ending: Option<Signal>,
}

static STATE: Mutex<State> = Mutex::new(State { flag: None, listener: None, raised: None, ending: None });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Takes a signal. Returns whether the program ends at once.
    fn take(&mut self, signal: Signal) -> bool {
        let is_first = self.raised.is_none() && self.ending.is_none();
        if !is_first {
            // The kernel and the shell both send SIGHUP where a terminal is closed.
            return signal != Signal::HangUp;
        }
        if self.flag.is_none() && self.listener.is_none() {
            return true;
        }
        self.raised = Some(signal);
        if let Some(flag) = &self.flag {
            flag.store(true, Ordering::SeqCst);
        }
        if signal != Signal::Interrupt || self.flag.is_none() {
            self.ending = Some(signal);
            self.listener.iter().for_each(|listener| listener());
        }
        false
    }
}

/// Listens for the signals. Call this before other threads start, because they would get the
/// signals instead.
pub fn install() -> Result<()> {
    #[cfg(unix)]
    {
        unix::listen(on_signal)
    }
    #[cfg(not(unix))]
    {
        ctrlc::set_handler(|| on_signal(Signal::Interrupt)).context("cannot listen for Ctrl-C")
    }
}

fn on_signal(signal: Signal) {
    if state().take(signal) {
        if std::io::stderr().is_terminal() {
            let _ = writeln!(std::io::stderr());
        }
        std::process::exit(signal.code().into());
    }
}

/// The exit code of work that a signal ended.
pub fn code() -> u8 {
    let state = state();
    state.ending.or(state.raised).unwrap_or(Signal::Interrupt).code()
}

/// From now on a signal that asks the program to end calls `listener`; a second signal ends it.
/// While there is no [`Guard`], Ctrl-C is such a signal too.
pub fn told(listener: impl Fn() + Send + 'static) {
    state().listener = Some(Box::new(listener));
}

/// While this exists, the first signal sets a flag and the second ends the program. A second SIGHUP
/// changes nothing.
pub struct Guard(());

/// Makes the next signal set `flag` instead of ending the program.
#[must_use]
pub fn stops(flag: Arc<AtomicBool>) -> Guard {
    let mut state = state();
    state.raised = None;
    state.flag = Some(flag);
    Guard(())
}

impl Guard {
    /// Whether there was a signal since the guard was made, or one that ends the program before.
    pub fn raised(&self) -> bool {
        let state = state();
        state.raised.is_some() || state.ending.is_some()
    }

    /// Ends the guard and returns [`raised`](Self::raised). No signal comes between the two: a
    /// later signal ends the program.
    pub fn end(self) -> bool {
        let mut state = state();
        state.flag = None;
        let raised = state.raised.is_some() || state.ending.is_some();
        drop(state);
        raised
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        state().flag = None;
    }
}

#[cfg(unix)]
mod unix {
    use super::{Context, Result, Signal};
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal as Number, sigaction};

    /// Blocks the signals, and passes each to `handle` on a thread of its own.
    pub fn listen(handle: fn(Signal)) -> Result<()> {
        let mut signals = SigSet::empty();
        signals.extend([Number::SIGINT, Number::SIGTERM]);
        if !is_hang_up_ignored().context("cannot ask for the handler of SIGHUP")? {
            signals.add(Number::SIGHUP);
        }
        signals.thread_block().context("cannot block signals")?;
        let wait = move || {
            while let Ok(number) = signals.wait() {
                handle(match number {
                    Number::SIGINT => Signal::Interrupt,
                    Number::SIGHUP => Signal::HangUp,
                    _ => Signal::Terminate,
                });
            }
        };
        std::thread::Builder::new().name("signals".to_string()).spawn(wait).context("cannot listen for signals")?;
        Ok(())
    }

    /// Whether the program was started with SIGHUP ignored, as `nohup` does it: then it should go
    /// on after the terminal is closed. A blocked signal would be delivered even if it is ignored.
    fn is_hang_up_ignored() -> nix::Result<bool> {
        let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        // SAFETY: neither action runs code of ours.
        unsafe {
            let before = sigaction(Number::SIGHUP, &ignore)?;
            sigaction(Number::SIGHUP, &before)?;
            Ok(matches!(before.handler(), SigHandler::SigIgn))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flag: bool, listener: bool) -> State {
        let listener = listener.then(|| Box::new(|| ()) as Listener);
        State { flag: flag.then(Arc::default), listener, raised: None, ending: None }
    }

    #[test]
    fn the_first_signal_stops_the_work_and_the_second_ends_the_program() {
        for signal in [Signal::Interrupt, Signal::Terminate] {
            assert!(with(false, false).take(signal), "nothing runs");
            let mut state = with(true, false);
            assert!(!state.take(signal));
            assert!(state.flag.as_ref().unwrap().load(Ordering::SeqCst));
            assert!(state.take(signal));
        }
    }

    #[test]
    fn a_terminal_that_is_closed_may_send_its_signal_twice() {
        let mut state = with(true, false);
        assert!(!state.take(Signal::HangUp));
        assert!(!state.take(Signal::HangUp), "the state is being saved");
        assert!(state.take(Signal::Terminate));
    }

    #[test]
    fn ctrl_c_ends_an_answer_and_other_signals_the_chat() {
        let mut state = with(true, true);
        assert!(!state.take(Signal::Interrupt));
        assert_eq!(state.ending, None);
        for signal in [Signal::Terminate, Signal::HangUp] {
            let mut state = with(true, true);
            assert!(!state.take(signal));
            assert_eq!(state.ending, Some(signal));
            state.raised = None;
            assert!(state.take(Signal::Terminate), "the next answer does not forget the first signal");
        }
        let mut waits = with(false, true);
        assert!(!waits.take(Signal::Interrupt));
        assert_eq!(waits.ending, Some(Signal::Interrupt), "no answer runs");
    }
}
