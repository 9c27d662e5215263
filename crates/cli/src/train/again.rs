//! `--resume -o DIR` without other flags: the flags of the run are kept in its folder.

use crate::exit::usage;
use anyhow::{Context, Result, anyhow};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file of the flags, in the folder of the run.
const FILE: &str = "run.json";

/// Flags that say what becomes of the folder, and not how the run learns.
const OF_ONE_START: [&str; 6] = ["output", "resume", "force", "dry_run", "json", "no_cache"];

/// Flags whose values are paths, or may be.
const PATHS: [&str; 7] = ["model", "data", "val", "init", "rehearse", "grads", "capture"];

/// What a folder keeps of the command that began its run.
struct Kept {
    words: Vec<OsString>,
    /// The folder in which the command was given.
    folder: PathBuf,
    /// The steps of warmup and the weight decay, which depend on the number of steps if no flag
    /// names them.
    warmup: Option<u64>,
    decay: Option<f64>,
}

/// The words of `weft train --resume -o DIR`, with the words that began the run. A word that is
/// given now replaces a kept one. Other command lines stay as they are.
pub fn with_kept(words: Vec<OsString>, cli: &Command) -> Result<Vec<OsString>> {
    let Some(at) = words.iter().position(|word| word == "train") else { return Ok(words) };
    let is_set = |word: &OsString| word == "--resume";
    if !words[at..].iter().any(is_set) {
        return Ok(words);
    }
    let Some(train) = cli.find_subcommand("train") else { return Ok(words) };
    let lenient = || {
        let relax = |arg: Arg| arg.required(false);
        train.clone().ignore_errors(true).mut_args(relax).no_binary_name(true).args(cli.get_arguments().cloned())
    };
    let Ok(now) = lenient().try_get_matches_from(&words[at + 1..]) else { return Ok(words) };
    let Some(output) = now.get_one::<PathBuf>("output") else { return Ok(words) };
    let Some(kept) = read(output)? else {
        let has_data = now.try_contains_id("data").unwrap_or(false);
        let lacks = || {
            usage(format!("{}: no run with its flags is there ({FILE}); give all flags of the run", output.display()))
        };
        return if has_data { Ok(words) } else { Err(lacks()) };
    };
    let Ok(before) = lenient().try_get_matches_from(&kept.words) else { return Ok(words) };
    let mut all = words[..=at].to_vec();
    let moved = std::env::current_dir().is_ok_and(|here| here != kept.folder);
    let is_given = |matches: &ArgMatches, id: &str| {
        matches.try_contains_id(id).unwrap_or(false) && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let mut positional = vec![];
    for arg in train.get_arguments() {
        let id = arg.get_id().as_str();
        if is_given(&now, id)
            || conflicts(train, arg).any(|other| is_given(&now, other.get_id().as_str()))
            || !is_given(&before, id)
            || OF_ONE_START.contains(&id)
        {
            continue;
        }
        let values = before.get_raw(id).into_iter().flatten();
        let is_path = PATHS.contains(&id);
        let values =
            values.map(|value| if moved && is_path { found_in(&kept.folder, value) } else { value.to_os_string() });
        match arg.get_long() {
            Some(long) if arg.get_action().takes_values() => {
                values.for_each(|value| all.extend([format!("--{long}").into(), value]));
            }
            Some(long) => all.push(format!("--{long}").into()),
            None => positional.extend(values),
        }
    }
    let steady = |id| is_given(&now, id) || is_given(&before, id);
    if let Some(warmup) = kept.warmup.filter(|_| !steady("warmup")) {
        all.extend(["--warmup".into(), warmup.to_string().into()]);
    }
    if let Some(decay) = kept.decay.filter(|_| !steady("decay")) {
        all.extend(["--decay".into(), decay.to_string().into()]);
    }
    all.extend(words[at + 1..].iter().cloned());
    // A model that is named now stands before other words, so the kept one may come last.
    all.extend(positional);
    Ok(all)
}

/// Flags that this one cannot stand beside. clap keeps a conflict on one side only.
fn conflicts<'a>(command: &'a Command, arg: &'a Arg) -> impl Iterator<Item = &'a Arg> {
    let has = |a: &Arg, b: &Arg| command.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id());
    command.get_arguments().filter(move |other| has(arg, other) || has(other, arg))
}

/// A path of the folder in which the run began, if it is one.
fn found_in(folder: &Path, value: &std::ffi::OsStr) -> OsString {
    let path = folder.join(value);
    if path.exists() { path.into_os_string() } else { value.to_os_string() }
}

fn read(output: &Path) -> Result<Option<Kept>> {
    let path = output.join(FILE);
    let text = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let damaged = || anyhow!("{}: the flags of the run are damaged; give them again, with --resume", path.display());
    let value: Value = serde_json::from_slice(&text).map_err(|_| damaged())?;
    let word = |word: &Value| word.as_str().map(OsString::from);
    let words = value["words"].as_array().and_then(|words| words.iter().map(word).collect::<Option<Vec<_>>>());
    let folder = value["folder"].as_str().map(PathBuf::from).ok_or_else(damaged)?;
    Ok(Some(Kept {
        words: words.ok_or_else(damaged)?,
        folder,
        warmup: value["warmup"].as_u64(),
        decay: value["decay"].as_f64(),
    }))
}

/// Keeps the words of the command behind `train` in the folder of its run. Words that are no UTF-8
/// cannot be kept, and then the run goes on only with the same flags.
pub fn keep(words: &[OsString], warmup: u64, decay: f32, output: &Path) -> Result<()> {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let (Some(words), Ok(folder)) = (words, std::env::current_dir()) else { return Ok(()) };
    let Some(folder) = folder.to_str() else { return Ok(()) };
    let text = json!({ "version": 1, "words": words, "folder": folder, "warmup": warmup, "decay": decay }).to_string();
    gguf::atomic_write(output.join(FILE), |out| out.write_all(text.as_bytes())).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Cli;
    use clap::{CommandFactory, Parser};

    fn resumed(kept: &str, now: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let words = |line: &str| line.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        keep(&words(kept), 9, 0.5, folder.path()).expect("room");
        let now = now.replace("DIR", folder.path().to_str().expect("text"));
        let all = with_kept(words(&format!("weft train {now}")), &Cli::command()).expect("words");
        assert!(Cli::try_parse_from(&all).is_ok(), "{all:?}");
        let text = all.iter().skip(2).map(|word| word.to_str().expect("text")).collect::<Vec<_>>().join(" ");
        text.replace(folder.path().to_str().expect("text"), "DIR")
    }

    #[test]
    fn a_run_that_goes_on_has_its_flags_again() {
        let kept = "model.gguf --data a.jsonl --data b.jsonl -o DIR --lr 1e-3 --force --epochs 3 --no-pack";
        assert_eq!(
            resumed(kept, "--resume -o DIR"),
            "--data a.jsonl --data b.jsonl --epochs 3 --lr 1e-3 --no-pack --warmup 9 --decay 0.5 --resume -o DIR model.gguf"
        );
    }

    #[test]
    fn what_is_given_now_replaces_what_was_given() {
        let kept = "model.gguf --data a.jsonl -o DIR --epochs 3 --rank 4";
        assert_eq!(
            resumed(kept, "--resume -o DIR --steps 40"),
            "--data a.jsonl --rank 4 --warmup 9 --decay 0.5 --resume -o DIR --steps 40 model.gguf"
        );
        assert!(resumed(kept, "other.gguf --resume -o DIR --data c.jsonl").starts_with("--rank 4 --epochs 3"));
    }

    #[test]
    fn other_words_stay() {
        let words: Vec<OsString> = ["weft", "train", "--data", "a", "-o", "b"].map(OsString::from).to_vec();
        assert_eq!(with_kept(words.clone(), &Cli::command()).expect("words"), words);
    }
}
