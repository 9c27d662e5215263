//! Keeps control tokens that a message spells from becoming control tokens.
//!
//! The *head* of a control token is its shortest beginning, of two characters or more, with which
//! no user-defined token begins (Qwen's `<|`, not `<`, for templates compare contents with
//! `<think>` and `<tool_response>`). A control token cannot come out of the template whole unless
//! its head does, so the guard exchanges one character by a private one
//!
//! - at every head inside a string from the caller,
//! - where such a string ends in the beginning of a head: the next string may bring the rest,
//! - where it starts with the rest of a head that does not read as a word, since a template may
//!   write `<` in front of it.
//!
//! The character is exchanged, not removed, so lengths, slices and comparisons of everything else
//! stay as they were. The limit: a template that cuts a piece out of the middle of a message and
//! joins the ends, or that writes the whole head itself in front of a message, can still make a
//! control token. Those are the template's, not the user's, doing.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::ChatError;
use crate::tokenizer::prefixes::Prefixes;
use crate::tokenizer::{Special, Tokenizer, TokenizerError};

/// Heads end here at the latest, whatever user-defined tokens begin with.
const MAX_HEAD_CHARS: usize = 16;
const FIRST_PRIVATE: char = '\u{F0000}';
const LAST_PRIVATE: char = '\u{FFFFD}';

pub(super) struct Guard {
    heads: Prefixes,
    /// Proper beginnings of heads.
    openings: HashSet<String>,
    /// Proper endings of heads that do not read as a word.
    endings: BTreeSet<String>,
    /// Private characters that somebody uses.
    taken: HashSet<char>,
    /// Private characters by what they stand for.
    marks: BTreeMap<char, char>,
}

impl Guard {
    /// A guard for `values`, to be rendered by the template `source`.
    pub fn new(tokenizer: &Tokenizer, values: &Map<String, Value>, source: &str) -> Self {
        let user_defined: BTreeSet<&str> = tokenizer.user_defined().map(|(_, name)| name).collect();
        let heads: BTreeSet<&str> = tokenizer.controls().filter_map(|(_, name)| head(name, &user_defined)).collect();
        let (mut openings, mut endings) = (HashSet::new(), BTreeSet::new());
        for head in &heads {
            for (at, c) in head.char_indices().skip(1) {
                openings.insert(head[..at].to_owned());
                if !c.is_alphanumeric() {
                    endings.insert(head[at..].to_owned());
                }
            }
        }
        let mut taken = HashSet::new();
        let mut take = |text: &str| taken.extend(text.chars().filter(|c| (FIRST_PRIVATE..=LAST_PRIVATE).contains(c)));
        take(source);
        tokenizer.controls().for_each(|(_, name)| take(name));
        values.iter().for_each(|(key, value)| each_text(key, value, &mut take));
        let heads = Prefixes::new(heads.into_iter().map(|head| (head.as_bytes().into(), 0)).collect());
        Guard { heads, openings, endings, taken, marks: BTreeMap::new() }
    }

    /// Marks every string in `values`, keys of nested objects included.
    pub fn protect(&mut self, values: &mut Map<String, Value>) -> Result<(), ChatError> {
        values.values_mut().try_for_each(|value| self.protect_value(value))
    }

    fn protect_value(&mut self, value: &mut Value) -> Result<(), ChatError> {
        match value {
            Value::String(text) => *text = self.protected(text)?,
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.protect_value(item))?,
            Value::Object(map) => {
                for (key, mut value) in std::mem::take(map) {
                    self.protect_value(&mut value)?;
                    map.insert(self.protected(&key)?, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }

    fn protected(&mut self, text: &str) -> Result<String, ChatError> {
        let heads = (0..text.len()).filter(|&at| self.heads.longest(&text.as_bytes()[at..]).is_some());
        let mut places: BTreeSet<usize> = heads.collect();
        let tail = text.char_indices().rev().take(MAX_HEAD_CHARS).map(|(at, _)| at);
        places.extend(tail.filter(|&at| self.openings.contains(&text[at..])));
        if !text.is_empty() && self.endings.iter().any(|ending| text.starts_with(ending) || ending.starts_with(text)) {
            places.insert(0);
        }
        let mut out = String::with_capacity(text.len() + 4 * places.len());
        let mut at = 0;
        for place in places {
            let Some(c) = text[place..].chars().next() else { continue };
            out.push_str(&text[at..place]);
            out.push(self.mark(c)?);
            at = place + c.len_utf8();
        }
        out.push_str(&text[at..]);
        Ok(out)
    }

    fn mark(&mut self, c: char) -> Result<char, ChatError> {
        if let Some(&mark) = self.marks.get(&c) {
            return Ok(mark);
        }
        let free = (FIRST_PRIVATE..=LAST_PRIVATE).find(|mark| !self.taken.contains(mark));
        let mark = free.ok_or(ChatError::NoPrivateCharacter)?;
        self.taken.insert(mark);
        self.marks.insert(c, mark);
        Ok(mark)
    }

    /// `text` with every mark changed back.
    pub fn restore(&self, text: &str) -> String {
        let originals: BTreeMap<char, char> = self.marks.iter().map(|(&c, &mark)| (mark, c)).collect();
        text.chars().map(|c| originals.get(&c).copied().unwrap_or(c)).collect()
    }

    /// The ids of a rendering of what was protected, without BOS: control tokens that are still
    /// whole are parsed, the stretches between are plain text.
    pub fn ids(&self, tokenizer: &Tokenizer, rendered: &str) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = Vec::new();
        for piece in tokenizer.split_controls(rendered) {
            match piece {
                Ok(id) => ids.push(id),
                Err(text) => ids.extend(tokenizer.encode(&self.restore(text), Special::Text)?),
            }
        }
        Ok(ids)
    }
}

/// The head of a control token; the whole of a name of one character.
fn head<'a>(name: &'a str, user_defined: &BTreeSet<&str>) -> Option<&'a str> {
    let shared = |head: &str| user_defined.range(head..).next().is_some_and(|name| name.starts_with(head));
    let ends = name.char_indices().map(|(at, c)| at + c.len_utf8());
    let mut heads = ends.skip(1).take(MAX_HEAD_CHARS - 1).map(|end| &name[..end]).peekable();
    let longest = heads.clone().last().or((!name.is_empty()).then_some(name))?;
    Some(heads.find(|head| !shared(head)).unwrap_or(longest))
}

fn each_text(key: &str, value: &Value, visit: &mut impl FnMut(&str)) {
    visit(key);
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text("", item, visit)),
        Value::Object(map) => map.iter().for_each(|(key, value)| each_text(key, value, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
