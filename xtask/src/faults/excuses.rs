//! Excuses for faults that no parity case can find. They are read from the shader:
//! `//~ TAG: KIND, KIND; TAG: KIND` at the end of the line, or alone on the line above. The tags
//! are listed in `reasons.rs`. A tag without a kind excuses every fault of its line.

use super::Fault;
use super::reasons::{self, Holds, Reason};
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The start of an excuse.
const MARK: &str = "//~";

/// A tag of a line, for one kind of fault or for all kinds.
struct Excuse {
    line: usize,
    reason: &'static Reason,
    kind: Option<String>,
}

/// The excuses of one file, in the order of its lines.
pub struct Excuses(Vec<Excuse>);

impl Excuses {
    /// Reads the excuses of a file. A tag without a reason is an error.
    pub fn of(path: &str, text: &str) -> anyhow::Result<Self> {
        let mut found = vec![];
        for (n, line) in text.lines().enumerate() {
            let Some((before, tags)) = line.split_once(MARK) else { continue };
            let of = if before.trim().is_empty() { n + 1 } else { n };
            for part in tags.split(';') {
                let (tag, kinds) = part.split_once(':').map_or((part, None), |(tag, kinds)| (tag, Some(kinds)));
                let tag = tag.trim();
                let reason = reasons::of(tag)
                    .with_context(|| format!("{path}:{}: {tag:?} is not a tag of reasons.rs", n + 1))?;
                let mut add = |kind| found.push(Excuse { line: of, reason, kind });
                match kinds {
                    Some(kinds) => kinds.split(',').for_each(|kind| add(Some(kind.trim().to_string()))),
                    None => add(None),
                }
            }
        }
        Ok(Self(found))
    }

    /// Each excuse with its line.
    pub fn lines(&self) -> impl Iterator<Item = (usize, String)> {
        self.0.iter().map(|excuse| (excuse.line, excuse.name()))
    }

    /// The index of the first excuse for a fault. `wide`: subgroups have at least 32 threads.
    pub fn find(&self, fault: &Fault, wide: bool) -> Option<usize> {
        self.0.iter().position(|excuse| {
            let kind = excuse.kind.as_deref().is_none_or(|kind| kind == fault.kind);
            kind && excuse.line == fault.line && !(wide && excuse.reason.holds == Holds::Narrow)
        })
    }

    /// True if the faults of an excuse are planted.
    pub fn plants(&self, found: usize) -> bool {
        self.0[found].reason.holds != Holds::Unplanted
    }

    /// Prints the excuses of these lines that are not `needed`, with their reasons. Returns their
    /// number. `needed`: the indices of the excuses that a fault needed.
    pub fn report_stale(&self, path: &str, lines: &RangeInclusive<usize>, needed: &BTreeSet<usize>) -> usize {
        let asked = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, excuse)| excuse.reason.holds == Holds::Always && lines.contains(&(excuse.line + 1)));
        let stale = asked.filter(|(n, _)| !needed.contains(n));
        stale
            .map(|(_, excuse)| {
                println!("{path}:{}: stale: {}\n    {}", excuse.line + 1, excuse.name(), excuse.reason.why)
            })
            .count()
    }

    /// The same for the excuses of one kind of fault, whether it is found by chance or not.
    pub fn report_stale_of(&self, path: &str, kind: &str, needed: &BTreeSet<usize>) -> usize {
        let stale =
            self.0.iter().enumerate().filter(|(n, excuse)| !needed.contains(n) && excuse.kind.as_deref() == Some(kind));
        stale.map(|(_, excuse)| println!("{path}:{}: stale: {}", excuse.line + 1, excuse.name())).count()
    }

    /// The tag of each excuse.
    #[cfg(test)]
    pub fn tags(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|excuse| excuse.reason.tag)
    }
}

impl Excuse {
    fn name(&self) -> String {
        let kind = self.kind.as_deref().map(|kind| format!(": {kind}"));
        format!("{}{}", self.reason.tag, kind.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::Excuses;
    use crate::faults;

    /// Every excuse must match a fault that no earlier excuse matches. This check needs no device;
    /// a check that the fault survives would need one.
    #[test]
    fn every_excuse_has_a_fault_of_its_line() {
        let mut idle = vec![];
        for path in crate::files::all().unwrap() {
            let text = crate::workspace::read(&path).unwrap();
            let (excuses, faults) = (Excuses::of(&path, &text).unwrap(), faults::of(&text));
            let unneeded = |n: &usize| !faults.iter().any(|fault| excuses.find(fault, false) == Some(*n));
            let unneeded = (0..excuses.0.len()).filter(unneeded).map(|n| &excuses.0[n]);
            idle.extend(unneeded.map(|excuse| format!("{path}:{}: {}", excuse.line + 1, excuse.name())));
        }
        assert!(idle.is_empty(), "{idle:#?}");
    }

    /// Each excuse as (line, excuse); lines count from 1.
    fn read(text: &str) -> Vec<(usize, String)> {
        Excuses::of("a.wgsl", text).unwrap().0.iter().map(|excuse| (excuse.line + 1, excuse.name())).collect()
    }

    #[test]
    fn excuses_stand_behind_a_line_or_above_it() {
        let of = |line: usize, excuse: &str| (line, excuse.to_string());
        assert_eq!(
            read("// no\nif (a < b) { //~ exit: comparison, guard dropped\n"),
            [of(2, "exit: comparison"), of(2, "exit: guard dropped")]
        );
        assert_eq!(read("\n    //~ twice; race: sign\n    x += 1;\n"), [of(3, "twice"), of(3, "race: sign")]);
    }

    #[test]
    fn a_fault_is_excused_by_line_and_kind_and_by_no_neighbours_where_they_are_wide() {
        let text = "    if (a < b) { //~ apart: comparison; exit: guard dropped\n    if (a < c) {\n";
        let (excuses, faults) = (Excuses::of("a.wgsl", text).unwrap(), faults::of(text));
        let found =
            |wide| faults.iter().map(|fault| (fault.line, fault.kind, excuses.find(fault, wide))).collect::<Vec<_>>();
        let unexcused = [(1, "comparison", None), (1, "guard dropped", None)];
        assert_eq!(found(false), [[(0, "comparison", Some(0)), (0, "guard dropped", Some(1))], unexcused].concat());
        assert_eq!(found(true), [[(0, "comparison", None), (0, "guard dropped", Some(1))], unexcused].concat());
    }

    #[test]
    fn an_unknown_tag_names_its_file_and_line() {
        let error = Excuses::of("shaders/a.wgsl", "//\nx += 1; //~ perhaps: sign\n").err().unwrap();
        assert_eq!(error.to_string(), "shaders/a.wgsl:2: \"perhaps\" is not a tag of reasons.rs");
    }
}
