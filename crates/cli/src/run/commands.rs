//! The commands of a chat. Help, completion and the nearest name come from their table.

use super::saved;
use super::settings::{self, SETTINGS};
use super::show::{self, TOPICS};
use super::talk::Talk;
use super::{lora, state, tools};
use crate::exit::say;
use crate::text::{nearest, printable};
use anyhow::{Context, Result, anyhow};
use model::chat::Message;

/// What a chat does after a command.
pub enum Then {
    /// Reads the next line.
    Prompt,
    /// Puts the text of a message into the line editor. The message takes the place of the turns
    /// from index `at` on.
    Edit {
        at: usize,
        text: String,
    },
    /// Answers a message, which takes the place of the turns from index `at` on.
    Answer {
        at: usize,
        message: Message,
    },
    Leave,
}

/// A command of the chat.
pub struct Command {
    /// Its name, then other names that mean it.
    pub names: &'static [&'static str],
    /// The words behind it; empty if it takes none.
    pub words: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    run: fn(&mut Talk, &str) -> Result<Then>,
}

/// All commands, in the order of `/help`.
pub const COMMANDS: &[Command] = &[
    Command {
        names: &["help", "?"],
        words: "[COMMAND]",
        help: "list the commands; with COMMAND, tell about one",
        run: |_, word| help(word),
    },
    Command {
        names: &["set"],
        words: "[NAME VALUE]",
        help: "change system, temp, ctx and more; alone, list all",
        run: |talk, words| settings::command(talk, words).map(printed),
    },
    Command {
        names: &["show"],
        words: "[TOPIC]",
        help: "show the model, the context, sampling and adapters",
        run: |talk, topic| show::command(talk, topic).map(printed),
    },
    Command {
        names: &["retry"],
        words: "",
        help: "drop the last answer and ask again, with another seed",
        run: |talk, _| retry(talk),
    },
    Command {
        names: &["edit"],
        words: "",
        help: "change the last message and send it again",
        run: |talk, _| edit(talk),
    },
    Command {
        names: &["reset", "clear"],
        words: "",
        help: "forget the conversation",
        run: |talk, _| {
            talk.reset();
            Ok(printed("the conversation is forgotten".to_string()))
        },
    },
    Command {
        names: &["save"],
        words: "NAME",
        help: "save the conversation; a path has a slash or ends in .weft",
        run: |talk, name| save(talk, name),
    },
    Command {
        names: &["load"],
        words: "[NAME]",
        help: "continue a saved conversation; alone, list the names",
        run: |talk, name| load(talk, name),
    },
    Command {
        names: &["lora"],
        words: "[ACTION]",
        help: "add FILE[:SCALE], scale N X, remove N; alone, list adapters",
        run: |talk, words| lora::command(talk, words).map(printed),
    },
    Command {
        names: &["tool"],
        words: "TEXT",
        help: "give the model TEXT as the result of its tool call",
        run: |talk, text| {
            let message = tools::result(talk, text)
                .context("/tool TEXT answers a tool call, and no tool call waits for an answer")?;
            Ok(Then::Answer { at: talk.messages.len(), message })
        },
    },
    Command {
        names: &["image"],
        words: "PATH",
        help: "pictures are not supported yet",
        run: |_, _| Err(anyhow!("pictures are not supported yet; nothing was sent")),
    },
    Command { names: &["exit", "bye", "quit"], words: "", help: "leave, like Ctrl-D", run: |_, _| Ok(Then::Leave) },
];

/// What `/help` says behind the list.
const KEYS: &str = "\
Ctrl-C stops an answer; twice at an empty prompt it leaves. Tab completes words.
\"\"\" begins and ends a message of several lines; a \\ continues a line.
A message that begins with a slash is sent with a space in front of it.";

fn printed(text: String) -> Then {
    say(&printable(&text));
    Then::Prompt
}

/// The name of a command and the words behind it; `None` if the line is a message. A first word
/// with a second slash is a path.
pub fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_word = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '?'));
    is_word.then(|| (name, rest.trim()))
}

/// Runs the command of this name.
pub fn run(talk: &mut Talk, name: &str, words: &str) -> Result<Then> {
    let command = find(name)?;
    if command.words.is_empty() && !words.is_empty() {
        return Err(anyhow!("/{name} takes no words behind it; a space in front of the line sends it as a message"));
    }
    if words.is_empty() && !command.words.is_empty() && !command.words.starts_with('[') {
        return Err(anyhow!("say /{name} {}", command.words));
    }
    (command.run)(talk, words)
}

fn find(name: &str) -> Result<&'static Command> {
    COMMANDS.iter().find(|command| command.names.contains(&name)).ok_or_else(|| {
        let names = COMMANDS.iter().flat_map(|command| command.names);
        let hint = match nearest(name, names.copied()) {
            Some(near) => format!("did you mean /{near}?"),
            None => "/help lists the commands.".to_string(),
        };
        anyhow!("no command /{name}; {hint} A message that begins with a slash needs a space in front")
    })
}

/// The completions of a line, and the index of the text that they replace: the name of a command, a
/// setting, a topic, or a saved conversation.
pub fn complete(line: &str) -> (usize, Vec<String>) {
    let Some((name, _)) = split(line) else { return (0, vec![]) };
    let at = line.rfind(char::is_whitespace).map_or(1, |at| at + 1);
    let words = line[..at].split_whitespace().skip(1).collect::<Vec<_>>();
    let names: Vec<String> = match (name, &words[..]) {
        _ if at == 1 => COMMANDS.iter().map(|command| command.names[0].to_string()).collect(),
        ("set", [] | ["parameter"]) => SETTINGS.iter().map(|setting| setting.names[0].to_string()).collect(),
        ("show", []) => TOPICS.iter().map(|topic| topic.name.to_string()).collect(),
        ("load" | "save", []) => state::names().unwrap_or_default(),
        ("lora", []) => ["add", "scale", "remove"].map(String::from).to_vec(),
        _ => vec![],
    };
    let begun = &line[at..];
    (at, names.into_iter().filter(|name| name.starts_with(begun)).map(|name| name + " ").collect())
}

fn help(word: &str) -> Result<Then> {
    let word = word.strip_prefix('/').unwrap_or(word);
    if word.is_empty() {
        say(&format!("{}\n{KEYS}", list(COMMANDS)));
    } else {
        let command = find(word)?;
        say(&list(std::slice::from_ref(command)));
        match command.names[0] {
            "set" => say(&settings::help()),
            "show" => say(&show::help()),
            _ => {}
        }
    }
    Ok(Then::Prompt)
}

fn list(commands: &[Command]) -> String {
    let rows = commands.iter().map(|command| {
        let names = command.names.iter().map(|name| format!("/{name}")).collect::<Vec<_>>().join(", ");
        (format!("{names} {}", command.words), command.help.to_string())
    });
    crate::text::columns(rows.collect())
}

fn retry(talk: &mut Talk) -> Result<Then> {
    let (at, message) = match talk.failed.take() {
        Some(message) => (talk.messages.len(), message),
        None => {
            let at = talk.last(&["user", "tool"]).context("there is no answer yet to ask for again")?;
            (at, talk.messages[at].clone())
        }
    };
    if talk.options.sampling.temperature == 0.0 {
        say("the temperature is 0, so the answer may be the one before; /set temp 0.7 varies it");
    } else if !talk.seeded {
        talk.options.sampling.seed = super::sampling::any_seed();
    }
    Ok(Then::Answer { at, message })
}

fn edit(talk: &mut Talk) -> Result<Then> {
    let (at, message) = match &talk.failed {
        Some(message) => (talk.messages.len(), message),
        None => {
            let at = talk.last(&["user"]).context("there is no message yet to edit")?;
            (at, &talk.messages[at])
        }
    };
    let text = message.content.as_ref().and_then(|content| content.as_str()).unwrap_or_default();
    let space = if text.starts_with('/') { " " } else { "" };
    Ok(Then::Edit { at, text: format!("{space}{text}") })
}

fn save(talk: &mut Talk, name: &str) -> Result<Then> {
    if talk.session.tokens().is_empty() {
        return Err(anyhow!("there is no conversation yet to save"));
    }
    let path = state::session(name)?;
    if let Some(folder) = path.parent().filter(|folder| state::sessions().is_ok_and(|sessions| *folder == sessions)) {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    talk.save_to(&path)?;
    Ok(printed(format!("the conversation is saved; /load {name} continues it ({})", path.display())))
}

fn load(talk: &mut Talk, name: &str) -> Result<Then> {
    if name.is_empty() {
        let names = state::names()?;
        let told =
            if names.is_empty() { "no saved conversations; /save NAME saves one".into() } else { names.join("\n") };
        return Ok(printed(told));
    }
    let path = state::session(name)?;
    if !path.exists() {
        let names = state::names().unwrap_or_default();
        let hint = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => "/load lists the names".to_string(),
        };
        return Err(anyhow!("no conversation {name}: there is no file {}; {hint}", path.display()));
    }
    talk.load_from(saved::open(&path)?)?;
    let (held, context) = (talk.session.tokens().len(), talk.session.context());
    Ok(printed(format!("the conversation goes on: {held} of {context} tokens of the context")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_word_behind_a_slash() {
        assert_eq!(split("/set temp 0.5"), Some(("set", "temp 0.5")));
        assert_eq!(split("/?"), Some(("?", "")));
        assert_eq!(split("/resett now"), Some(("resett", "now")));
        for message in [" /help", "/usr/bin/x is what?", "//", "/* code */", "help", ""] {
            assert_eq!(split(message), None, "{message}");
        }
    }

    #[test]
    fn the_list_fits_a_screen_of_80_columns() {
        let list = format!("{}\n{KEYS}", list(COMMANDS));
        let widest = list.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 80, "{widest}");
    }

    #[test]
    fn an_unknown_command_names_the_nearest() {
        let told = |name: &str| find(name).err().expect("no such command").to_string();
        assert!(told("resett").starts_with("no command /resett; did you mean /reset?"), "{}", told("resett"));
        assert!(told("sytem").contains("/help lists"), "{}", told("sytem"));
    }

    #[test]
    fn tab_completes_names_and_the_first_word_behind_them() {
        assert_eq!(complete("/re"), (1, vec!["retry ".to_string(), "reset ".to_string()]));
        assert_eq!(complete("/set top"), (5, vec!["top-k ".to_string(), "top-p ".to_string()]));
        assert_eq!(complete("/set parameter see"), (15, vec!["seed ".to_string()]));
        assert_eq!(complete("/show lic"), (6, vec!["license ".to_string()]));
        assert_eq!(complete("what is /re").1, Vec::<String>::new());
    }

    #[test]
    fn the_readme_lists_every_command_and_setting() {
        let readme = include_str!("../../README.md");
        for command in COMMANDS {
            assert!(readme.contains(&format!("`/{}", command.names[0])), "/{}", command.names[0]);
        }
        for setting in SETTINGS {
            assert!(readme.contains(&format!("`{}", setting.names[0])), "{}", setting.names[0]);
        }
    }
}
