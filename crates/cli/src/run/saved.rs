//! Saves conversations and loads them again.

use crate::output;
use crate::progress::Bar;
use anyhow::{Context, Result, anyhow};
use gguf::atomic_write;
use model::chat::Message;
use model::{Error, Session};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// A saved session: its file is open and not yet read.
pub struct Saved {
    pub path: PathBuf,
    file: BufReader<File>,
}

/// What a saved session holds beside its tokens.
#[derive(Default)]
pub struct Conversation {
    /// The turns. Raw sessions have none.
    pub messages: Vec<Message>,
    /// The settings that `/set` changed, by name.
    pub settings: Vec<(String, String)>,
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
    /// Loads the saved state into the session; returns the conversation.
    pub fn load(mut self, session: &mut Session, raw: bool) -> Result<Conversation> {
        let name = || self.path.display().to_string();
        let _bar = Bar::bytes(format!("loading {}", self.path.display()));
        session.load(&mut self.file).map_err(anyhow::Error::new).with_context(name)?;
        if self.file.read(&mut [0]).with_context(name)? > 0 {
            return Err(anyhow!(
                "{}: there is more in the file than the saved session, so it is damaged",
                self.path.display()
            ));
        }
        if raw {
            return Ok(Conversation::default());
        }
        conversation(session.note()).filter(|conversation| !conversation.messages.is_empty()).ok_or_else(|| {
            anyhow!("{}: the session holds raw text, not a conversation; continue it with --raw", self.path.display())
        })
    }
}

/// The note of a session with these messages: the messages, or an object of messages and settings.
pub fn note(messages: &[Message], settings: &[(String, String)]) -> String {
    match settings {
        [] => json!(messages).to_string(),
        settings => json!({ "messages": messages, "settings": settings }).to_string(),
    }
}

/// What a note holds.
fn conversation(note: &[u8]) -> Option<Conversation> {
    let mut note: Value = serde_json::from_slice(note).ok()?;
    let (messages, settings) = match &mut note {
        Value::Object(note) => (note.remove("messages")?, note.remove("settings")?),
        messages => (messages.take(), json!([])),
    };
    let (messages, settings) = (serde_json::from_value(messages).ok()?, serde_json::from_value(settings).ok()?);
    Some(Conversation { messages, settings })
}

/// Refuses a path that cannot be written, before the conversation begins.
pub fn writable(path: &Path) -> Result<()> {
    output::writable(path).context("--save-session cannot be written")
}

/// Writes the session with its note. An existing file stays until the new one is complete.
pub fn save(session: &mut Session, path: &Path) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_with_settings_and_without() {
        let messages = [Message::user("a"), Message::assistant("b")];
        for settings in [vec![], vec![("temp".to_string(), "0.5".to_string())]] {
            let read = conversation(note(&messages, &settings).as_bytes()).unwrap();
            assert_eq!((&read.messages[..], &read.settings), (&messages[..], &settings));
        }
        for bad in ["", "7", "{}", r#"{"messages": [], "settings": 7}"#, r#"[{"role": 7}]"#] {
            assert!(conversation(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
