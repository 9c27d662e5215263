//! A conversation at a terminal.

use super::editor::{Line, LineEditor};
use super::talk::Talk;
use super::{lora, reopen, report, tools};
use crate::exit::{Interrupted, note, one_line, say};
use crate::text::printable;
use anyhow::Result;
use model::Finish;
use model::chat::Message;

const HELP: &str = "\
/reset    forget the conversation
/tool X   give the model X as the result of its tool call
/lora     list the applied adapters; /lora add FILE[:SCALE], /lora scale N X and /lora remove N
          change them, and the conversation is read again with the new adapters
/help     show this list
/exit     leave, like Ctrl-D
Ctrl-C stops an answer; twice at an empty prompt it leaves. A \\ at the end of a line continues it.";

/// Prompts and answers until the user leaves.
pub fn chat(talk: &mut Talk) -> Result<()> {
    let mut editor = LineEditor::new()?;
    say(&greeting(talk));
    // Ctrl-C may come just after an answer has ended: only the second one leaves.
    let mut leaving = false;
    loop {
        let line = match editor.read()? {
            Line::Text(line) => line,
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
        match line.trim() {
            "" => {}
            "/exit" | "/quit" | "/bye" => return Ok(()),
            "/help" | "/?" => say(HELP),
            "/reset" | "/clear" => {
                talk.reset();
                say("the conversation is forgotten");
            }
            command if command.split_whitespace().next() == Some("/tool") => {
                match tools::result(talk, &command["/tool".len()..]) {
                    Some(message) => answer(talk, message)?,
                    None => say("/tool TEXT answers a tool call, and no tool call waits for an answer"),
                }
            }
            command if command.split_whitespace().next() == Some("/lora") => {
                match lora::command(talk, &command["/lora".len()..]) {
                    Ok(said) => say(&printable(&said)),
                    Err(error) if lasting(&error) => return Err(error),
                    Err(error) => note(&reopen::told(&error)),
                }
            }
            command if command.starts_with('/') && !command.contains(char::is_whitespace) => {
                say(&format!("no command \"{command}\"; /help lists the commands"));
            }
            _ => answer(talk, Message::user(line.as_str()))?,
        }
    }
}

/// Answers one message. An error of the model ends the turn, not the chat.
fn answer(talk: &mut Talk, message: Message) -> Result<()> {
    match talk.show(message) {
        Ok(answer) => {
            match answer.finish {
                Finish::Cancelled => say("[stopped]"),
                Finish::Context => {
                    say(&format!("[the context of {} tokens is full; /reset empties it]", talk.session.context()))
                }
                Finish::End | Finish::Stop(_) | Finish::Length => {}
            }
            if talk.args.stats {
                say(&report::stats(talk, &answer));
            }
            Ok(())
        }
        Err(error) if lasting(&error) => Err(error),
        Err(error) => {
            note(&reopen::told(&error));
            Ok(())
        }
    }
}

/// Whether the next turn would fail too: an I/O error of the terminal.
fn lasting(error: &anyhow::Error) -> bool {
    error.is::<std::io::Error>()
}

fn greeting(talk: &Talk) -> String {
    let model = talk.session.model();
    let name = match (model.file().get_opt::<&str>("general.name"), model.file().path()) {
        (Ok(Some(name)), _) => name.to_string(),
        (_, Some(path)) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        (_, None) => model.summary().architecture.to_string(),
    };
    one_line(&format!("{name}, on {}; /help lists commands, Ctrl-D leaves", model.executor().name()))
}
