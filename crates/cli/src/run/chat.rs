//! A conversation at a terminal.

use super::commands::{self, Then};
use super::editor::{Line, LineEditor};
use super::talk::Talk;
use super::{reopen, report};
use crate::exit::{Interrupted, note, one_line, say};
use anyhow::Result;
use model::Finish;
use model::chat::Message;

/// Prompts and answers until the user leaves.
pub fn chat(talk: &mut Talk) -> Result<()> {
    let mut editor = LineEditor::new()?;
    let name = format!("{}, on {}", talk.name(), talk.session.model().executor().name());
    say(&one_line(&format!("{name}; /help lists commands, Ctrl-D leaves")));
    // Ctrl-C may come just after an answer has ended: only the second one leaves.
    let mut leaving = false;
    // The turn that the next message replaces, and the text that the line begins with.
    let (mut edited, mut draft) = (None, String::new());
    loop {
        let line = editor.read(std::mem::take(&mut draft))?;
        let at = std::mem::take(&mut edited).unwrap_or(talk.messages.len());
        let then = match line {
            Line::Text(line) if line.trim().is_empty() => Then::Prompt,
            Line::Text(line) => match commands::split(&line) {
                Some((name, words)) => command(talk, name, words)?,
                None => Then::Answer { at, message: Message::user(unspaced(&line)) },
            },
            Line::Quoted(text) if text.trim().is_empty() => Then::Prompt,
            Line::Quoted(text) => Then::Answer { at, message: Message::user(text) },
            Line::Interrupt if leaving => return Err(Interrupted.into()),
            Line::Interrupt => {
                say("press Ctrl-C again to leave, or Ctrl-D");
                leaving = true;
                continue;
            }
            Line::End => return Ok(()),
            Line::Stop => return Err(Interrupted.into()),
        };
        leaving = false;
        match then {
            Then::Prompt => {}
            Then::Edit { at, text } => (edited, draft) = (Some(at), text),
            Then::Answer { at, message } => answer(talk, at, message)?,
            Then::Leave => return Ok(()),
        }
    }
}

/// A message without the space in front of its slash.
fn unspaced(line: &str) -> &str {
    line.strip_prefix(' ').filter(|line| line.starts_with('/')).unwrap_or(line)
}

/// Runs a command. Its error does not end the chat.
fn command(talk: &mut Talk, name: &str, words: &str) -> Result<Then> {
    commands::run(talk, name, words).or_else(|error| {
        if lasting(&error) {
            return Err(error);
        }
        note(&reopen::told(&error));
        Ok(Then::Prompt)
    })
}

/// Answers one message in place of the turns from index `at` on. An error of the model ends the
/// turn, not the chat.
fn answer(talk: &mut Talk, at: usize, message: Message) -> Result<()> {
    match talk.show_at(at, message.clone()) {
        Ok(answer) => {
            talk.failed = None;
            match answer.finish {
                Finish::Cancelled => say("[stopped]"),
                Finish::Context => say(&format!(
                    "[the context of {} tokens is full; /reset forgets the conversation, /set ctx N enlarges it]",
                    talk.session.context()
                )),
                Finish::End | Finish::Stop(_) | Finish::Length => {}
            }
            if talk.args.stats {
                say(&report::stats(talk, &answer));
            }
            Ok(())
        }
        Err(error) if lasting(&error) => Err(error),
        Err(error) => {
            talk.failed = Some(message);
            note(&reopen::told(&error));
            Ok(())
        }
    }
}

/// Whether the next turn would fail too: an I/O error of the terminal.
fn lasting(error: &anyhow::Error) -> bool {
    error.is::<std::io::Error>()
}
