//! Ctrl-C ends the program, or first only the running work if a [`Guard`] asks for that. Also: a
//! closed terminal.

use crate::exit::INTERRUPTED;
use anyhow::{Context, Result};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

static STOPS: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
static RAISED: AtomicBool = AtomicBool::new(false);

/// Installs the handler for Ctrl-C.
pub fn install() -> Result<()> {
    ctrlc::set_handler(on_signal).context("cannot listen for Ctrl-C")
}

/// Blocks the hang-up signal, so that the program survives a closed terminal: reads and writes fail
/// then, and the conversation can still be saved. Call this before other threads start, because
/// they would get the signal instead.
pub fn outlive_terminal() -> Result<()> {
    #[cfg(unix)]
    nix::sys::signal::SigSet::from(nix::sys::signal::Signal::SIGHUP).thread_block().context("cannot block the hang-up signal")?;
    Ok(())
}

fn on_signal() {
    let stops = STOPS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match stops {
        Some(flag) if !RAISED.swap(true, Ordering::SeqCst) => flag.store(true, Ordering::SeqCst),
        _ => {
            if std::io::stderr().is_terminal() {
                eprintln!();
            }
            std::process::exit(INTERRUPTED.into());
        }
    }
}

/// While this exists, the first Ctrl-C sets a flag and the second ends the program.
pub struct Guard(());

/// Makes the next Ctrl-C set `flag` instead of ending the program.
#[must_use]
pub fn stops(flag: Arc<AtomicBool>) -> Guard {
    RAISED.store(false, Ordering::SeqCst);
    *STOPS.lock().unwrap_or_else(PoisonError::into_inner) = Some(flag);
    Guard(())
}

impl Guard {
    /// Whether Ctrl-C was pressed since the guard was made.
    pub fn raised(&self) -> bool {
        RAISED.load(Ordering::SeqCst)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        *STOPS.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
