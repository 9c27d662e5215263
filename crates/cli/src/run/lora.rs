//! `/lora` in a chat: lists, adds, scales and removes adapters while the model stays loaded.

use super::talk::Talk;
use crate::lora::{self, Choice};
use anyhow::{Context, Result, anyhow};
use model::{Applied, Size};
use std::path::Path;

/// Runs `/lora` with these words; returns the list of adapters afterwards.
pub fn command(talk: &mut Talk, words: &str) -> Result<String> {
    talk.reopen()?;
    let (verb, rest) = words.trim().split_once(char::is_whitespace).unwrap_or((words.trim(), ""));
    let mut adapters = talk.session.adapters().to_vec();
    match (verb, rest.trim()) {
        ("" | "list", "") => return Ok(list(&adapters)),
        ("add", file) if !file.is_empty() => {
            let choice: Choice = file.parse().map_err(|problem: String| anyhow!("{file}: {problem}"))?;
            if let Some(at) = adapters.iter().position(|applied| is_of(applied, &choice.path)) {
                let (n, scale) = (at + 1, adapters[at].scale);
                return Err(anyhow!(
                    "{} is adapter {n} already, times {scale}; /lora scale {n} X changes its scale",
                    choice.path.display()
                ));
            }
            let applied = choice.load(talk.session.model())?;
            lora::say(&choice.path, applied.adapter.note().as_ref());
            adapters.push(applied);
        }
        ("scale", both) => {
            let (number, scale) =
                both.split_once(char::is_whitespace).context("two numbers are needed: /lora scale N X")?;
            let scale = scale.trim().parse().ok().filter(|scale: &f32| scale.is_finite());
            place(&mut adapters, number)?.1.scale = scale.context("X must be a finite number: /lora scale N X")?;
        }
        ("remove", number) => {
            let at = place(&mut adapters, number)?.0;
            adapters.remove(at);
        }
        _ => return Err(anyhow!("say /lora, /lora add FILE[:SCALE], /lora scale N X, or /lora remove N")),
    }
    talk.session.set_adapters(adapters)?;
    Ok(list(talk.session.adapters()))
}

/// Whether an adapter was opened from this file or folder.
fn is_of(applied: &Applied, path: &Path) -> bool {
    let Some(own) = applied.adapter.path() else { return false };
    own == path || std::fs::canonicalize(own).is_ok_and(|own| std::fs::canonicalize(path).is_ok_and(|new| new == own))
}

/// The adapter with this number, counted from 1, and its index.
fn place<'a>(adapters: &'a mut [Applied], number: &str) -> Result<(usize, &'a mut Applied)> {
    let count = adapters.len();
    let at = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|&at| at < count);
    let are = if count == 1 { "is" } else { "are" };
    let at = at.with_context(|| format!("no adapter \"{number}\"; there {are} {count}, counted from 1"))?;
    Ok((at, &mut adapters[at]))
}

/// A line for each adapter.
pub fn list(adapters: &[Applied]) -> String {
    if adapters.is_empty() {
        return "no adapters; /lora add FILE[:SCALE] applies one".to_string();
    }
    let line = |(n, applied): (usize, &Applied)| {
        let Applied { adapter, scale } = applied;
        let (name, count, size) = (lora::name(applied), adapter.len(), Size(adapter.bytes()));
        let matrices = if count == 1 { "matrix" } else { "matrices" };
        format!("{}  {name} times {scale} (changes {count} {matrices}, {size})", n + 1)
    };
    adapters.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}
