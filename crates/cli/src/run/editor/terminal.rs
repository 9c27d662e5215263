//! The terminal that keys come from, opened a second time.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{dup2_stdin, ttyname};
use std::fs::OpenOptions;
use std::io::stdin;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

/// The time in which more of a paste arrives, in milliseconds.
const PATIENCE_MS: u8 = 30;

/// Standard input has a description of its own of the terminal. Whether it blocks is of no effect
/// to standard output and to the shell, which share another one.
pub struct Own(());

impl Own {
    /// Opens the terminal again as standard input. `None` if it cannot be opened.
    pub fn new() -> Option<Self> {
        let path = ttyname(stdin()).ok()?;
        let terminal = OpenOptions::new().read(true).custom_flags(OFlag::O_NOCTTY.bits()).open(path).ok()?;
        dup2_stdin(&terminal).ok()?;
        Some(Self(()))
    }

    /// Sets whether reading waits for keys. Returns whether that worked.
    pub fn block(&self, blocks: bool) -> bool {
        let Ok(flags) = fcntl(stdin(), FcntlArg::F_GETFL) else { return false };
        let mut flags = OFlag::from_bits_retain(flags);
        flags.set(OFlag::O_NONBLOCK, !blocks);
        fcntl(stdin(), FcntlArg::F_SETFL(flags)).is_ok()
    }
}

/// Whether keys wait, or arrive soon.
pub fn waits() -> bool {
    let stdin = stdin();
    let mut ends = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut ends, PollTimeout::from(PATIENCE_MS)).is_ok_and(|ready| ready > 0)
}
