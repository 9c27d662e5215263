//! Loads and stores of a workgroup, with a note of the invocation that accesses each word.

use super::finding::Finding;
use super::machine::Machine;
use super::program::Of;
use super::shadow::{Act, Mark, WHOLE};
use super::value::{Mask, Value};
use anyhow::{bail, ensure};
use std::rc::Rc;

/// Memory that a pointer points into.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// A variable of an invocation, by its index among all that live: private ones, then those of
    /// functions. Offsets are in scalars.
    Local(usize),
    /// Workgroup memory, up to this word. Offsets are in scalars.
    Words(usize),
    /// A buffer, by the number of its binding. Offsets are in bytes.
    Buffer(usize),
}

#[derive(Clone, Debug)]
pub struct Pointer {
    pub root: Root,
    /// Each invocation's offset.
    pub at: Rc<Value>,
}

/// The invocation or the subgroup that makes an access.
#[derive(Copy, Clone, Debug)]
pub enum By {
    Lane(usize),
    Subgroup(usize),
}

/// The bits in which a word differs from what it is: the other order of a read and a write.
const CHANGE: u32 = 0x0410_0410;

impl Machine<'_> {
    /// The value that a pointer points to, in the invocations of `mask`.
    pub fn load(&mut self, from: &Pointer, of: &Of, mask: &Mask) -> anyhow::Result<Value> {
        if let Root::Local(n) = from.root {
            return Ok(gathered(&self.locals[n], &from.at, of.scalars, mask));
        }
        let lanes = if from.at.is_shared() { 1 } else { mask.lanes() };
        let mut value = Value { lanes, words: vec![0; of.scalars * lanes] };
        if !self.is_noted(from.root) {
            self.load_unnoted(from, of, mask, &mut value)?;
            return Ok(value);
        }
        for lane in (0..mask.lanes()).filter(|&lane| mask.has(lane)) {
            self.load_lane(from, of, lane, lane % lanes, &mut value)?;
        }
        Ok(value)
    }

    /// Loads the value that a pointer points to, and notes no access. One of several invocations
    /// loads the value that they share.
    fn load_unnoted(&self, from: &Pointer, of: &Of, mask: &Mask, value: &mut Value) -> anyhow::Result<()> {
        let lanes = value.lanes;
        let loading = (0..mask.lanes()).filter(|&lane| mask.has(lane)).take(if lanes == 1 { 1 } else { mask.lanes() });
        let places = loading.map(|lane| (from.at.at(0, lane) as usize, lane % lanes));
        match from.root {
            Root::Words(end) => {
                for (start, to) in places {
                    for scalar in 0..of.scalars {
                        value.words[scalar * lanes + to] = self.words[self.word(start + scalar, end)?];
                    }
                }
            }
            Root::Buffer(binding) => {
                let (parts, buffer, range) = (self.program.parts(of)?, self.buffer(binding), self.range(binding));
                for (start, to) in places {
                    for (scalar, &(offset, kind)) in
                        parts.iter().enumerate().filter(|(_, part)| start + part.0 + part.1.bytes() <= range.len())
                    {
                        value.words[scalar * lanes + to] = kind.read(buffer, range.start + start + offset);
                    }
                }
            }
            Root::Local(_) => bail!("a variable of an invocation in memory"),
        }
        Ok(())
    }

    fn load_lane(&mut self, from: &Pointer, of: &Of, lane: usize, to: usize, value: &mut Value) -> anyhow::Result<()> {
        let start = from.at.at(0, lane) as usize;
        for scalar in 0..of.scalars {
            value.words[scalar * value.lanes + to] = self.read(from.root, start, scalar, of, By::Lane(lane))?;
        }
        Ok(())
    }

    /// Stores a value, in the invocations of `mask`.
    pub fn store(&mut self, to: &Pointer, of: &Of, value: &Value, mask: &Mask) -> anyhow::Result<()> {
        if let Root::Local(n) = to.root {
            scatter(&mut self.locals[n], &to.at, value, mask);
            return Ok(());
        }
        for lane in (0..mask.lanes()).filter(|&lane| mask.has(lane)) {
            let start = to.at.at(0, lane) as usize;
            for scalar in 0..of.scalars {
                self.write(to.root, start, scalar, of, value.at(scalar, lane), By::Lane(lane))?;
            }
        }
        Ok(())
    }

    /// Reads a scalar of the value at an offset.
    pub fn read(&mut self, root: Root, start: usize, scalar: usize, of: &Of, by: By) -> anyhow::Result<u32> {
        match root {
            Root::Words(end) => {
                let word = self.word(start + scalar, end)?;
                self.note(word, Act::Read, by, false)?;
                Ok(self.words[word])
            }
            Root::Buffer(binding) => {
                let (offset, kind) = self.program.parts(of)?[scalar];
                let Some(at) = self.byte(binding, start + offset, kind.bytes()) else { return Ok(0) };
                self.note_buffer(binding, at, Act::Read, by, false)?;
                let word = kind.read(self.buffer(binding), at);
                let changed = binding > 0 && self.changed.contains(&(self.call.bindings[binding - 1].buffer, at / 4));
                Ok(if changed { word ^ CHANGE } else { word })
            }
            Root::Local(_) => bail!("a cooperative matrix in a variable"),
        }
    }

    pub fn write(&mut self, root: Root, start: usize, scalar: usize, of: &Of, word: u32, by: By) -> anyhow::Result<()> {
        match root {
            Root::Words(end) => {
                let to = self.word(start + scalar, end)?;
                self.note(to, Act::Write, by, self.words[to] == word)?;
                self.words[to] = word;
            }
            Root::Buffer(binding) => {
                let (offset, kind) = self.program.parts(of)?[scalar];
                if let Some(at) = self.byte(binding, start + offset, kind.bytes()) {
                    self.note_buffer(binding, at, Act::Write, by, kind.read(self.buffer(binding), at) == word)?;
                    kind.write(word, self.buffer_mut(binding), at);
                }
            }
            Root::Local(_) => bail!("a cooperative matrix in a variable"),
        }
        Ok(())
    }

    /// Replaces an atomic word by a function of it. Returns the word before.
    pub fn update(&mut self, to: &Pointer, lane: usize, act: Act, of: impl Fn(u32) -> u32) -> anyhow::Result<u32> {
        let at = to.at.at(0, lane) as usize;
        match to.root {
            Root::Words(end) => {
                let word = self.word(at, end)?;
                self.note(word, act, By::Lane(lane), false)?;
                let before = self.words[word];
                self.words[word] = of(before);
                Ok(before)
            }
            Root::Buffer(binding) => {
                let Some(at) = self.byte(binding, at, 4) else { return Ok(0) };
                self.note_buffer(binding, at, act, By::Lane(lane), false)?;
                let word = &mut self.buffer_mut(binding)[at..at + 4];
                let before = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                word.copy_from_slice(&of(before).to_le_bytes());
                Ok(before)
            }
            Root::Local(_) => bail!("an atomic variable of an invocation"),
        }
    }

    pub fn word(&self, at: usize, end: usize) -> anyhow::Result<usize> {
        ensure!(at < end, Finding::Outside { what: "workgroup memory".to_string(), at: self.at });
        Ok(at)
    }

    /// The byte in the buffer of a byte in a binding. Past the end of a binding a device reads
    /// zeros and drops what is written.
    fn byte(&self, binding: usize, at: usize, bytes: usize) -> Option<usize> {
        let range = self.range(binding);
        (at + bytes <= range.len()).then_some(range.start + at)
    }

    /// Whether accesses are noted: what is only read cannot race.
    pub fn is_noted(&self, root: Root) -> bool {
        match root {
            Root::Local(_) => false,
            Root::Words(_) => self.shadow.is_some(),
            Root::Buffer(binding) => {
                binding > 0 && self.space.shadows.contains_key(&self.call.bindings[binding - 1].buffer)
            }
        }
    }

    fn note(&mut self, word: usize, act: Act, by: By, equal: bool) -> anyhow::Result<()> {
        let Some(shadow) = &mut self.shadow else { return Ok(()) };
        let (who, subgroup) = match by {
            By::Lane(lane) => (lane, lane / self.program.types.subgroup),
            By::Subgroup(subgroup) => (WHOLE as usize | subgroup, subgroup),
        };
        let mark =
            Mark { era: self.era, who: who as u32, subgroup: subgroup as u32, turn: self.turns[subgroup], at: self.at };
        match shadow.note(word, act, mark, equal) {
            Some((_, first)) => bail!(Finding::Race { what: self.program.name_of(word), first, second: mark }),
            None => Ok(()),
        }
    }

    /// Barriers of WGSL's workgroups and naga's subgroups order no accesses to buffers, so those of
    /// a whole dispatch are one interval. A read that races is noted: its value may be dropped.
    fn note_buffer(&mut self, binding: usize, byte: usize, act: Act, by: By, equal: bool) -> anyhow::Result<()> {
        if binding == 0 {
            return Ok(());
        }
        let buffer = self.call.bindings[binding - 1].buffer;
        let Some(shadow) = self.space.shadows.get_mut(&buffer) else { return Ok(()) };
        let (lanes, size) = (self.program.lanes, self.program.types.subgroup);
        let (who, subgroup) = match by {
            By::Lane(lane) => (self.group * lanes + lane, lane / size),
            By::Subgroup(subgroup) => (WHOLE as usize | (self.group * lanes + subgroup), subgroup),
        };
        let subgroup = (self.group * lanes.div_ceil(size) + subgroup) as u32;
        let mark = Mark { era: 1, who: who as u32, subgroup, turn: 0, at: self.at };
        let Some((before, first)) = shadow.note(byte / 4, act, mark, equal) else { return Ok(()) };
        let race = Finding::Race { what: format!("binding {binding}"), first, second: mark };
        ensure!([before, act].contains(&Act::Read) && ![before, act].contains(&Act::Add), race);
        self.unsure.entry((buffer, byte / 4)).or_insert(race);
        Ok(())
    }
}

/// Each invocation's scalars from its offset on. Offsets of other invocations than those of `mask`
/// mean nothing.
pub fn gathered(from: &Value, at: &Value, scalars: usize, mask: &Mask) -> Value {
    let last = from.scalars() - scalars;
    if at.is_shared() {
        return from.part((at.words[0] as usize).min(last), scalars);
    }
    let lanes = mask.lanes();
    let mut value = Value { lanes, words: vec![0; scalars * lanes] };
    mask.each(|lane| {
        let start = (at.at(0, lane) as usize).min(last);
        (0..scalars).for_each(|n| value.words[n * lanes + lane] = from.at(start + n, lane));
    });
    value
}

fn scatter(to: &mut Value, at: &Value, value: &Value, mask: &Mask) {
    let last = to.scalars() - value.scalars();
    if at.is_shared() {
        to.put((at.words[0] as usize).min(last), value, mask);
        return;
    }
    let lanes = mask.lanes();
    if to.lanes != lanes {
        *to = to.spread(lanes);
    }
    mask.each(|lane| {
        let start = (at.at(0, lane) as usize).min(last);
        (0..value.scalars()).for_each(|n| to.words[(start + n) * lanes + lane] = value.at(n, lane));
    });
}
