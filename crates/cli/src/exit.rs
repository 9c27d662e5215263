//! Exit codes, and errors printed on one line.

use crate::interrupt;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// A mistake in the command line: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// A signal ended the work: exit code [`interrupt::code`], and no message.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl Error for Interrupted {}

/// A [`Usage`] error.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

/// Prints the error, if there is one to print, and chooses the exit code.
pub fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if error.is::<Interrupted>() {
        return ExitCode::from(interrupt::code());
    }
    if error.chain().any(closed_pipe) {
        return ExitCode::SUCCESS;
    }
    // Errors of input and of files carry context. An I/O error without context comes from stdout.
    let error = if error.is::<io::Error>() && error.chain().count() == 1 {
        error.context("cannot write to stdout")
    } else {
        error
    };
    note(&line(&error));
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}

/// Prints a message to stderr. A failure is ignored: if stderr is closed, nobody can read it.
pub fn note(message: &str) {
    say(&format!("weft: {message}"));
}

/// Prints a line of a conversation to stderr. A failure is ignored, as by [`note`].
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a message to stderr as [`note`] does, only if `WEFT_DEBUG` is set and not empty.
pub fn debug(message: &str) {
    if std::env::var_os("WEFT_DEBUG").is_some_and(|value| !value.is_empty()) {
        note(message);
    }
}

/// Whether the reader of our output closed the pipe. This is not a failure.
fn closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// An error and its causes on one line, with the flags that change it.
pub fn line(error: &anyhow::Error) -> String {
    match error.chain().find_map(flags) {
        Some(flags) => format!("{} (see {flags})", plain(error)),
        None => plain(error),
    }
}

/// An error and its causes on one line, without causes that an outer message already contains.
pub fn plain(error: &anyhow::Error) -> String {
    let mut whole = String::new();
    for cause in error.chain() {
        let message = cause.to_string();
        if whole.is_empty() {
            whole = message;
        } else if !whole.contains(&message) {
            whole.push_str(": ");
            whole.push_str(&message);
        }
    }
    one_line(&whole)
}

/// The flags that change what an error of the libraries names.
fn flags(error: &(dyn Error + 'static)) -> Option<Cow<'static, str>> {
    if let Some(reason) = error.downcast_ref::<train::FolderError>() {
        return matches!(reason, train::FolderError::HoldsRun { .. }).then_some("--resume and --force".into());
    }
    match error.downcast_ref::<train::Error>() {
        // Only flags that help: the message says what fits.
        Some(train::Error::TooLarge { layers, factors, fit, .. }) => {
            let flags = [
                ("--micro", fit.is_some()),
                ("--length", fit.is_some()),
                ("--checkpointing", *layers),
                ("--full", *factors),
            ];
            let flags: Vec<_> = flags.into_iter().filter(|(_, helps)| *helps).map(|(flag, _)| flag).collect();
            return Some(if flags.is_empty() { "--device".into() } else { flags.join(", ").into() });
        }
        Some(train::Error::TooLong { .. }) => return Some("--micro".into()),
        Some(train::Error::Pipe { .. }) => return Some("--data -".into()),
        Some(train::Error::Unwritable { .. }) => return Some("--type".into()),
        _ => {}
    }
    if error.downcast_ref().is_some_and(model::chat::ChatError::raw_text_helps) {
        return Some("--raw".into());
    }
    use model::SnapshotError;
    let flags = match error.downcast_ref::<model::Error>()? {
        model::Error::TooLarge { weights, available, .. } if weights < available => "--ctx and --kv",
        model::Error::TooLarge { .. } => "--device",
        model::Error::CacheTooLarge { .. } => "--ctx and --kv",
        model::Error::Context { .. } | model::Error::ContextOverflow { .. } => "--ctx",
        model::Error::Snapshot(SnapshotError::Adapters { .. }) => "--lora",
        model::Error::Snapshot(SnapshotError::KvType { .. }) => "--kv",
        model::Error::Chat(error) if error.raw_text_helps() => "--raw",
        model::Error::Kernels(kernels::Error::DeviceLost { .. }) => "--device",
        model::Error::Kernels(kernels::Error::OutOfMemory { .. }) => "--ctx, --kv and --device",
        _ => return None,
    };
    Some(flags.into())
}

/// Joins the lines of a text and escapes control characters: files and drivers may contain both.
pub fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" ");
    lines.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_says_nothing_twice() {
        let cause = io::Error::other("disk\nfull");
        let inner = anyhow::Error::new(cause).context("cannot write: disk\nfull").context("out.npy");
        assert_eq!(line(&inner), "out.npy: cannot write: disk full");
        assert_eq!(one_line("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
    }

    #[test]
    fn an_error_of_a_library_gets_the_flags_that_change_it() {
        let full = anyhow::Error::new(model::Error::ContextOverflow { needed: 9, limit: 8 }).context("m.gguf");
        let said = line(&full);
        assert!(
            said.starts_with("m.gguf: the context is full") && said.ends_with("start a new chat (see --ctx)"),
            "{said}"
        );
        let lost = kernels::Error::DeviceLost { what: "a step".to_string(), reason: "reset".to_string() };
        assert!(line(&model::Error::from(lost).into()).ends_with("or use the CPU (see --device)"));
        let template = || model::chat::ChatError::Unbounded { what: "a loop" };
        for refused in [template().into(), model::Error::from(template()).into()] {
            assert!(line(&refused).ends_with("or take a file with another template (see --raw)"), "{refused}");
        }
        let pipe = train::Error::Pipe { file: "facts".to_string() };
        assert!(line(&pipe.into()).ends_with("read it as a stream (see --data -)"));
        assert!(!line(&model::Error::NothingFed.into()).contains("--"));
    }

    #[test]
    fn a_closed_pipe_is_no_failure_however_deep() {
        let error = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert!(error.chain().any(closed_pipe));
    }
}
