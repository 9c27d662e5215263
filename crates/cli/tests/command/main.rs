//! Runs the binary and checks its output, its files and its exit code.

mod cache;
#[cfg(unix)]
mod chat;
mod doctor;
#[cfg(unix)]
mod estimates;
mod examples;
mod facts;
mod files;
mod gradients;
mod habits;
mod help;
#[cfg(feature = "hub")]
mod hub;
mod inspect;
mod list;
mod lora;
mod merge;
mod numbers;
mod ollama;
mod run;
mod saved;
#[cfg(unix)]
mod signals;
mod tiny;
mod tokenize;
mod tools;
mod train;
mod tune;
#[cfg(all(unix, feature = "web"))]
mod web;

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The command `weft` with these arguments.
fn weft(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(words).stdin(Stdio::null()).env("WEFT_CACHE_DIR", env!("CARGO_TARGET_TMPDIR"));
    // No test leaves this machine, nor reads the user's models.
    command.env("HF_HUB_OFFLINE", "1").env("HF_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-hub"));
    command
}

/// The result of a run.
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is text");
        Self {
            code: output.status.code().expect("no signal ended it"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// Runs to the end, with an empty stdin.
fn run(words: &[&str]) -> Run {
    weft(words).output().expect("the binary starts").into()
}

/// Runs to the end, with this text on stdin.
fn piped(words: &[&str], stdin: &str) -> Run {
    let mut child = weft(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A run that ends before it has read everything is not an error here.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("the binary ends").into()
}

impl Run {
    /// The output of a run that succeeded with nothing on stderr.
    #[track_caller]
    fn good(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    /// The error line of a run that failed with this code and printed nothing to stdout.
    #[track_caller]
    fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}", self.err);
        assert_eq!(self.out, "");
        assert!(
            self.err.starts_with("weft: ") && self.err.ends_with('\n') && self.err.matches('\n').count() == 1,
            "{:?}",
            self.err
        );
        self.err
    }

    /// The output as JSON.
    #[track_caller]
    fn json(self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{}", self.err);
        serde_json::from_str(&self.out).expect("JSON")
    }
}
