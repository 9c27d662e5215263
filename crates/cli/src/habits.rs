//! Words of other programs' command lines, rewritten into ours before clap reads them.
//!
//! clap takes `-ngl 99` for `-n gl`, and knows no word that stands for several words of ours. So
//! one table (`table.rs`) says what becomes of each word, and in which commands.

mod table;

use clap::Command;
use std::ffi::OsString;
use table::{Becomes, COMMANDS, FLAGS, Flag};

/// The words of a command line in our own words, and notes about words without effect.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ours {
    pub words: Vec<OsString>,
    pub notes: Vec<String>,
}

/// Rewrites the words of a command line. The first word is the name of the program.
///
/// # Errors
/// The line that says what to do instead of a word that this program cannot obey.
pub fn ours(words: impl IntoIterator<Item = OsString>, cli: &Command) -> Result<Ours, String> {
    let mut words = words.into_iter();
    let mut ours = Ours { words: words.by_ref().take(1).collect(), notes: vec![] };
    let mut before = vec![];
    let command = loop {
        match words.next() {
            Some(word) if takes_value(cli, &word) => before.extend([Some(word), words.next()].into_iter().flatten()),
            Some(word) if word.to_string_lossy().starts_with('-') => before.push(word),
            other => break other,
        }
    };
    ours.words.append(&mut before);
    let Some(typed) = command else { return Ok(ours) };
    let name = match COMMANDS.iter().find(|(word, _)| typed == *word) {
        Some((_, Ok(name))) => OsString::from(name),
        Some((_, Err(instead))) => return Err((*instead).to_string()),
        None => typed,
    };
    let mut rest = Rest { command: name.to_string_lossy().into_owned(), ..Rest::default() };
    ours.words.push(name);
    let Some(subcommand) = cli.find_subcommand(&rest.command) else {
        ours.words.extend(words);
        return Ok(ours);
    };
    rest.read(words, cli, subcommand)?;
    ours.words.extend(rest.model.into_iter().chain(rest.files).chain(rest.words));
    ours.notes = rest.notes;
    Ok(ours)
}

/// What comes behind the name of the command.
#[derive(Default)]
struct Rest {
    command: String,
    /// MODEL, which clap expects first.
    model: Option<OsString>,
    /// What clap expects behind MODEL.
    files: Vec<OsString>,
    words: Vec<OsString>,
    notes: Vec<String>,
    /// The types of keys and of values.
    cache: [Option<String>; 2],
}

impl Rest {
    fn read(&mut self, words: impl Iterator<Item = OsString>, cli: &Command, sub: &Command) -> Result<(), String> {
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let Some(text) = word.to_str() else {
                self.words.push(word);
                continue;
            };
            if text == "--" {
                self.words.push(word);
                self.words.extend(words);
                break;
            }
            let (name, glued) = match text.split_once('=').filter(|_| text.starts_with("--")) {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (text, None),
            };
            match FLAGS.iter().find(|flag| flag.means(name, &self.command)) {
                Some(flag) if flag.value => {
                    let next = || words.next().map(|value| value.to_string_lossy().into_owned());
                    let value = glued.or_else(next).ok_or_else(|| format!("{name} needs a value"))?;
                    let second = || words.next_if(|next| is_number(&next.to_string_lossy()));
                    let pair = (flag.pair && !value.contains(':')).then(second).flatten();
                    let value = pair.map_or(value.clone(), |scale| format!("{value}:{}", scale.to_string_lossy()));
                    self.take(flag, name, value)?;
                }
                Some(flag) => {
                    if let Some(value) = glued.as_deref().filter(|value| !flag.optional.contains(value)) {
                        return Err(match flag.optional {
                            [] => format!("{name} takes no value, but {value} is given"),
                            known => format!("{name}={value}: the value is one of {}", known.join(", ")),
                        });
                    }
                    let mut optional = || words.next_if(|next| flag.optional.contains(&&*next.to_string_lossy()));
                    let value = glued.or_else(|| optional().map(|value| value.to_string_lossy().into_owned()));
                    self.take(flag, name, value.unwrap_or_default())?;
                }
                None => {
                    let value = glued.is_none() && (takes_value(sub, &word) || takes_value(cli, &word));
                    self.words.push(word);
                    self.words.extend(value.then(|| words.next()).flatten());
                }
            }
        }
        self.cache_types()
    }

    /// Adds what a flag becomes.
    fn take(&mut self, flag: &Flag, name: &str, value: String) -> Result<(), String> {
        match flag.becomes {
            Becomes::Flag(ours) => {
                self.words.push(ours.into());
                self.words.extend(flag.value.then(|| value.into()));
            }
            Becomes::Model(prefix) => {
                if let Some(model) = &self.model {
                    return Err(format!("{name} names a second model; the first one is {}", model.display()));
                }
                self.model = Some(format!("{prefix}{value}").into());
            }
            Becomes::File => self.files.push(value.into()),
            Becomes::Words(words) => self.words.extend(words(&value)?.into_iter().map(OsString::from)),
            Becomes::Keys => self.cache[0] = Some(value),
            Becomes::Values => self.cache[1] = Some(value),
            Becomes::Nothing => {}
            Becomes::Told(note) => self.notes.push(format!("{name}: {note}")),
            Becomes::Refused(instead) => return Err(format!("{name}: {instead}")),
        }
        Ok(())
    }

    /// Keys and values have one type.
    fn cache_types(&mut self) -> Result<(), String> {
        let ty = match std::mem::take(&mut self.cache) {
            [Some(keys), Some(values)] if keys != values => {
                return Err(format!(
                    "-ctk {keys} -ctv {values}: keys and values have one type here; give one --kv f16, f32 or q8_0"
                ));
            }
            [None, None] => return Ok(()),
            [keys, values] => keys.or(values).unwrap_or_default(),
        };
        self.words.extend(["--kv".into(), ty.into()]);
        Ok(())
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f32>().is_ok()
}

/// Whether the word is a flag of this command whose value is the next word.
fn takes_value(command: &Command, word: &OsString) -> bool {
    let Some(word) = word.to_str() else { return false };
    let is = |arg: &clap::Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long) || arg.get_all_aliases().unwrap_or_default().contains(&long),
        None => word.strip_prefix('-').is_some_and(|short| {
            let mut letters = short.chars();
            letters.next() == arg.get_short() && arg.get_short().is_some() && letters.next().is_none()
        }),
    };
    let value = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    command.get_arguments().any(|arg| is(arg) && value(arg))
}

#[cfg(test)]
mod tests;
