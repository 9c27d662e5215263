//! Files of the user's state folder: the history of typed lines, and saved conversations.

use anyhow::{Context, Result, anyhow};
use std::path::{MAIN_SEPARATOR, PathBuf};

/// The end of the names of saved conversations.
const END: &str = ".weft";

/// The largest number of bytes of a conversation's name.
const LONGEST: usize = 200;

/// `weft` in the user's state folder; `None` if there is no such folder.
fn folder() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = if cfg!(windows) {
        var("LOCALAPPDATA")
    } else {
        var("XDG_STATE_HOME").or_else(|| var("HOME").map(|home| home.join(".local/state")))
    };
    Some(state?.join("weft"))
}

/// The history file.
pub fn history() -> Option<PathBuf> {
    Some(folder()?.join("history"))
}

/// The folder of saved conversations.
pub fn sessions() -> Result<PathBuf> {
    let folder = folder().context("there is no folder for saved conversations: name a file, such as ./talk.weft")?;
    Ok(folder.join("sessions"))
}

/// The file of a conversation: a path if it has a slash or ends in `.weft`, else a name in the
/// folder of conversations.
pub fn session(name: &str) -> Result<PathBuf> {
    if name.contains(['/', MAIN_SEPARATOR]) || name.ends_with(END) {
        return Ok(PathBuf::from(name));
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    if name.is_empty() || name.starts_with('.') || name.len() > LONGEST || !name.chars().all(plain) {
        return Err(anyhow!(
            "\"{}\" is not a name for a conversation: a name has letters, digits, spaces, \"-\", \"_\" and \".\", and does not begin with \".\"; a path has a slash or ends in {END}",
            name.escape_debug()
        ));
    }
    Ok(sessions()?.join(format!("{name}{END}")))
}

/// The names of the saved conversations, sorted.
pub fn names() -> Result<Vec<String>> {
    let Ok(entries) = std::fs::read_dir(sessions()?) else { return Ok(vec![]) };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(END)?.to_string())).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_the_folder_and_a_path_is_a_path() {
        for name in ["..", ".", "", ".hidden", "a\0b", "a\nb", "a:b", "*", &"a".repeat(201)] {
            assert!(session(name).is_err(), "{name:?}");
        }
        for path in ["../a", "/tmp/a", "a.weft", "./a", "..weft/x"] {
            assert_eq!(session(path).unwrap(), PathBuf::from(path));
        }
        if let Ok(folder) = sessions() {
            for name in ["talk", "my talk", "straße-2.1", "a..b"] {
                assert_eq!(session(name).unwrap().parent(), Some(folder.as_path()), "{name}");
            }
        }
    }
}
