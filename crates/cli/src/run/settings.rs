//! `/set` in a chat: what can be changed while it runs, in one table.

use super::args::Args;
use super::editor::unquoted;
use super::talk::Talk;
use crate::exit::{note, plain};
use crate::text::{columns, nearest};
use anyhow::{Context, Result, anyhow};
use clap::{Args as _, FromArgMatches};
use model::chat::Message;
use std::error::Error;

/// Something that `/set` changes.
pub struct Setting {
    /// Its name, then other names that mean it, as Ollama has them.
    pub names: &'static [&'static str],
    /// The value that it takes; empty if it takes none.
    pub value: &'static str,
    help: &'static str,
    /// Whether a saved conversation keeps it.
    kept: bool,
    /// What holds now; empty for words that switch something off.
    get: fn(&Talk) -> String,
    set: fn(&mut Talk, &str) -> Result<()>,
}

/// A number of the sampling parameters.
macro_rules! number {
    ($flag:literal, $others:expr, $value:literal, $help:literal, $field:ident) => {
        Setting {
            names: $others,
            value: $value,
            help: $help,
            kept: true,
            get: |talk| talk.options.sampling.$field.to_string(),
            set: |talk, text| {
                talk.options.sampling = flag($flag, text)?.sampling.over(&talk.options.sampling);
                Ok(())
            },
        }
    };
}

/// All settings, in the order of `/set`.
pub const SETTINGS: &[Setting] = &[
    Setting {
        names: &["system"],
        value: "TEXT",
        help: "the system message: how the model should behave",
        kept: false,
        get: |talk| talk.system().map_or_else(|| "none".to_string(), quoted),
        set: |talk, text| system(talk, unquoted(text)),
    },
    number!("temp", &["temp", "temperature"], "T", "temperature; 0 takes the most probable token", temperature),
    number!("top-k", &["top-k"], "K", "choose among the K most probable tokens; 0 for all", top_k),
    number!("top-p", &["top-p"], "P", "choose among tokens of probability P together; 1 for all", top_p),
    number!("min-p", &["min-p"], "P", "drop tokens less probable than P times the best", min_p),
    number!(
        "repeat-penalty",
        &["repeat-penalty"],
        "X",
        "divide the logits of tokens seen before by X",
        repetition_penalty
    ),
    number!(
        "frequency-penalty",
        &["frequency-penalty"],
        "X",
        "subtract X for every time a token was seen",
        frequency_penalty
    ),
    number!(
        "presence-penalty",
        &["presence-penalty"],
        "X",
        "subtract X from every token seen before",
        presence_penalty
    ),
    number!("repeat-last-n", &["repeat-last-n"], "N", "number of last tokens that count as seen", last_n),
    Setting {
        names: &["seed"],
        value: "N",
        help: "random seed; -1 chooses one",
        kept: true,
        get: |talk| talk.options.sampling.seed.to_string(),
        set: seed,
    },
    Setting {
        names: &["ctx", "num-ctx", "context"],
        value: "N",
        help: "context length in tokens; the conversation is read again",
        kept: false,
        get: |talk| talk.session.context().to_string(),
        set: context,
    },
    Setting {
        names: &["max-tokens", "num-predict", "n-predict"],
        value: "N",
        help: "largest number of tokens in an answer; -1 for no limit",
        kept: true,
        get: |talk| talk.options.max_tokens.map_or_else(|| "no limit".to_string(), |n| n.to_string()),
        set: |talk, text| {
            talk.options.max_tokens =
                if text == "-1" { None } else { flag("max-tokens", text)?.max_tokens.map(|n| n as usize) };
            Ok(())
        },
    },
    Setting {
        names: &["think"],
        value: "",
        help: "ask the model to think before it answers",
        kept: true,
        get: |talk| thinking(talk).to_string(),
        set: |talk, _| think(talk, true),
    },
    Setting {
        names: &["nothink", "no-think"],
        value: "",
        help: "ask the model not to think",
        kept: true,
        get: |_| String::new(),
        set: |talk, _| think(talk, false),
    },
    Setting {
        names: &["verbose", "stats"],
        value: "",
        help: "print the speed behind each answer",
        kept: false,
        get: |talk| on(talk.args.stats),
        set: |talk, _| {
            talk.args.stats = true;
            Ok(())
        },
    },
    Setting {
        names: &["quiet"],
        value: "",
        help: "do not print the speed",
        kept: false,
        get: |_| String::new(),
        set: |talk, _| {
            talk.args.stats = false;
            Ok(())
        },
    },
    Setting {
        names: &["wordwrap"],
        value: "",
        help: "break the lines of answers between words",
        kept: false,
        get: |talk| on(talk.wraps),
        set: |talk, _| {
            talk.wraps = true;
            Ok(())
        },
    },
    Setting {
        names: &["nowordwrap"],
        value: "",
        help: "leave the lines of answers to the terminal",
        kept: false,
        get: |_| String::new(),
        set: |talk, _| {
            talk.wraps = false;
            Ok(())
        },
    },
];

/// Runs `/set` with these words; returns what holds afterwards.
pub fn command(talk: &mut Talk, words: &str) -> Result<String> {
    let (name, value) = pair(words);
    // Ollama says `/set parameter NAME VALUE`.
    let (name, value) = if name == "parameter" { pair(value) } else { (name, value) };
    if name.is_empty() {
        return Ok(columns(SETTINGS.iter().map(|setting| (usage(setting), now(setting, talk))).collect()));
    }
    let setting = find(name)?;
    let name = setting.names[0];
    match (setting.value, value) {
        ("", "") => {}
        ("", _) => return Err(anyhow!("/set {name} takes no value")),
        (_, "") => return Ok(format!("{name} is {}; /set {} changes it", (setting.get)(talk), usage(setting))),
        _ => {}
    }
    (setting.set)(talk, value)?;
    if setting.kept {
        talk.changed.retain(|(other, _)| other != name);
        talk.changed.push((name.to_string(), value.to_string()));
    }
    let now = (setting.get)(talk);
    Ok(if setting.value.is_empty() { name.to_string() } else { format!("{name} {now}") })
}

/// The settings with a line of help for each.
pub fn help() -> String {
    columns(SETTINGS.iter().map(|setting| (usage(setting), setting.help.to_string())).collect())
}

/// The parameters that hold now.
pub fn parameters(talk: &Talk) -> String {
    let named = SETTINGS.iter().filter(|setting| !setting.value.is_empty() && setting.names[0] != "system");
    columns(named.map(|setting| (setting.names[0].to_string(), (setting.get)(talk))).collect())
}

impl Talk {
    /// Takes the settings of a saved conversation. Flags take precedence.
    pub fn adopt(&mut self, settings: &[(String, String)]) {
        let (tokens, thinking) = (self.args.max_tokens, self.args.thinking());
        for (name, value) in settings {
            let known = find(name).ok().filter(|setting| setting.kept);
            let done = known.context("it is not known").and_then(|setting| (setting.set)(self, value));
            match done {
                Ok(()) => self.changed.push((name.clone(), value.clone())),
                Err(error) => note(&format!(
                    "the setting \"{}\" of the saved conversation is left out: {}",
                    name.escape_debug(),
                    plain(&error)
                )),
            }
        }
        self.options.sampling = self.args.sampling.over(&self.options.sampling);
        self.options.max_tokens = tokens.map(|n| n as usize).or(self.options.max_tokens);
        self.render.enable_thinking = thinking.or(self.render.enable_thinking);
    }
}

fn pair(words: &str) -> (&str, &str) {
    let (name, value) = words.trim().split_once(char::is_whitespace).unwrap_or((words.trim(), ""));
    (name, value.trim())
}

fn find(name: &str) -> Result<&'static Setting> {
    let wanted = name.trim_start_matches('-').replace('_', "-");
    SETTINGS.iter().find(|setting| setting.names.contains(&wanted.as_str())).ok_or_else(|| {
        let names = SETTINGS.iter().flat_map(|setting| setting.names);
        let hint = match nearest(&wanted, names.copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => "/set lists the settings".to_string(),
        };
        anyhow!("there is no setting {name}; {hint}")
    })
}

fn usage(setting: &Setting) -> String {
    format!("{} {}", setting.names[0], setting.value).trim_end().to_string()
}

fn now(setting: &Setting, talk: &Talk) -> String {
    match (setting.get)(talk) {
        now if now.is_empty() => setting.help.to_string(),
        now => format!("{} [now: {now}]", setting.help),
    }
}

/// The arguments of the command line with this one flag: its checks hold here too.
fn flag(name: &str, value: &str) -> Result<Args> {
    let line = ["weft".to_string(), format!("--{name}={value}")];
    let parsed = Args::augment_args(clap::Command::new("weft")).try_get_matches_from(line);
    parsed.and_then(|matches| Args::from_arg_matches(&matches)).map_err(|error| {
        let reason = error.source().map_or_else(|| "this is not possible".to_string(), ToString::to_string);
        anyhow!("{name} {value}: {reason}")
    })
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn on(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_string()
}

fn thinking(talk: &Talk) -> &'static str {
    match talk.render.enable_thinking {
        Some(true) => "on",
        Some(false) => "off",
        None => "the chat template decides",
    }
}

fn think(talk: &mut Talk, on: bool) -> Result<()> {
    if !talk.session.model().template().knows_thinking() {
        return Err(anyhow!("the chat template of this model has no switch for thinking"));
    }
    talk.render.enable_thinking = Some(on);
    Ok(())
}

fn seed(talk: &mut Talk, text: &str) -> Result<()> {
    talk.seeded = text != "-1";
    if talk.seeded {
        talk.options.sampling = flag("seed", text)?.sampling.over(&talk.options.sampling);
    } else {
        talk.options.sampling.seed = super::sampling::any_seed();
    }
    Ok(())
}

/// Changes the system message, which the next turn reads again with the conversation. An empty text
/// removes it.
fn system(talk: &mut Talk, text: &str) -> Result<()> {
    if talk.args.raw {
        return Err(anyhow!("there is no system message with --raw"));
    }
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let message = (!text.is_empty()).then(|| Message::system(text));
    let mut turns = vec![&mut talk.first];
    if !talk.messages.is_empty() {
        turns.push(&mut talk.messages);
    }
    for turns in turns {
        let has = turns.first().is_some_and(|turn| turn.role == "system");
        turns.splice(..usize::from(has), message.clone());
    }
    Ok(())
}

/// Opens the session again with another context length.
fn context(talk: &mut Talk, text: &str) -> Result<()> {
    let asked = flag("ctx", text)?.context.ctx;
    talk.reopen()?;
    let options = talk.opening.clone().context(asked);
    let held = talk.session.context();
    talk.session.reopen(options.clone()).map_err(|error| {
        let reason = match error {
            model::Error::ContextOverflow { needed, limit } => {
                format!("a context of {limit} tokens is too short for the conversation of {needed}")
            }
            error => plain(&error.into()),
        };
        anyhow!("{reason}; the context of {held} tokens stays")
    })?;
    talk.opening = options;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_flags_and_of_ollama() {
        for (name, own) in [
            ("top_k", "top-k"),
            ("num_ctx", "ctx"),
            ("temperature", "temp"),
            ("--min-p", "min-p"),
            ("num_predict", "max-tokens"),
            ("repeat_last_n", "repeat-last-n"),
            ("nothink", "nothink"),
        ] {
            assert_eq!(find(name).unwrap().names[0], own, "{name}");
        }
        let error = find("sytem").err().unwrap().to_string();
        assert_eq!(error, "there is no setting sytem; did you mean system?");
    }

    #[test]
    fn values_have_the_checks_of_the_flags() {
        let refused = |name: &str, value: &str| flag(name, value).err().unwrap().to_string();
        assert_eq!(refused("top-p", "2"), "top-p 2: must be above 0 and at most 1");
        assert_eq!(refused("temp", "hot"), "temp hot: not a number");
        for (name, value) in [("temp", "-1"), ("top-k", "-1"), ("ctx", "0"), ("max-tokens", "0"), ("seed", "x")] {
            let line = refused(name, value);
            assert!(line.starts_with(&format!("{name} {value}: ")) && !line.contains('\n'), "{line}");
        }
        assert_eq!(flag("ctx", "16").unwrap().context.ctx, Some(16));
    }
}
