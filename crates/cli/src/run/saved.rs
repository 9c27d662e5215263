//! Saves conversations and loads them again.

use anyhow::{Context, Result, anyhow};
use gguf::atomic_write;
use model::chat::Message;
use model::{Error, Session};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// A saved session: its file is open and not yet read.
pub struct Saved {
    path: PathBuf,
    file: BufReader<File>,
}

/// Opens a saved session, before a model is loaded for it.
pub fn open(path: &Path) -> Result<Saved> {
    let failed = || format!("cannot open the saved session {}", path.display());
    let file = File::open(path).with_context(failed)?;
    if file.metadata().with_context(failed)?.is_dir() {
        return Err(anyhow!("{} is a directory; name a file that --save-session wrote", path.display()));
    }
    Ok(Saved { path: path.to_path_buf(), file: BufReader::with_capacity(1 << 20, file) })
}

impl Saved {
    /// Loads the saved state into the session; returns the messages, which a raw session does not
    /// have.
    pub fn load(mut self, session: &mut Session, raw: bool) -> Result<Vec<Message>> {
        let name = || self.path.display().to_string();
        session.load(&mut self.file).map_err(anyhow::Error::new).with_context(name)?;
        if self.file.read(&mut [0]).with_context(name)? > 0 {
            return Err(anyhow!(
                "{}: there is more in the file than the saved session, so it is damaged",
                self.path.display()
            ));
        }
        if raw {
            return Ok(vec![]);
        }
        let messages: Result<Vec<Message>, _> = serde_json::from_slice(session.note());
        let messages = messages.ok().filter(|messages| !messages.is_empty());
        messages.ok_or_else(|| {
            anyhow!("{}: the session holds raw text, not a conversation; continue it with --raw", self.path.display())
        })
    }
}

/// Refuses a path that cannot be written, before the conversation begins.
pub fn writable(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(anyhow!("{} is a directory; name a file for --save-session", path.display()));
    }
    if !folder.is_dir() {
        return Err(anyhow!("--save-session {}: there is no folder {}", path.display(), folder.display()));
    }
    // This creates and removes a temporary file beside it. An existing file is not changed.
    let mut made = false;
    let tried = atomic_write(path, |_| {
        made = true;
        Err(io::ErrorKind::Interrupted.into())
    });
    if made { Ok(()) } else { tried.context("--save-session cannot be written") }
}

/// Writes the session with its messages. An existing file stays until the new one is complete.
pub fn save(session: &mut Session, messages: &[Message], path: &Path) -> Result<()> {
    session.set_note(json!(messages).to_string());
    // Errors of the session pass through `atomic_write` as I/O errors; `failed` keeps the original.
    let mut failed = None;
    let written = atomic_write(path, |out| {
        session.save(out).map_err(|error: Error| {
            let text = error.to_string();
            failed = Some(error);
            io::Error::other(text)
        })
    });
    match failed {
        Some(error) => Err(anyhow::Error::new(error).context(format!("cannot save the session to {}", path.display()))),
        None => Ok(written?),
    }
}
