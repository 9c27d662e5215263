//! Excuses for faults that no parity case can find. They follow from the code, by the patterns of
//! `patterns.rs`, or they are read from the shader: `//~ TAG: KIND, KIND; TAG: KIND` at the end of
//! the line, or alone on the line above. The tags are listed in `reasons.rs`.

use super::patterns;
use super::reasons::{self, Holds, Reason};
use super::{self as faults, Fault};
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The start of an excuse.
const MARK: &str = "//~";

/// An excuse for faults of one kind in a line.
struct Excuse {
    line: usize,
    reason: &'static Reason,
    kind: String,
    /// The line with the fault, if the excuse follows from a pattern. It excuses no other fault.
    after: Option<String>,
}

/// The excuses of one file: those of patterns, then those of its tags, in the order of its lines.
pub struct Excuses(Vec<Excuse>);

impl Excuses {
    /// The excuses of a file. A tag without a reason or without a kind is an error.
    pub fn of(path: &str, text: &str) -> anyhow::Result<Self> {
        let tags = tags(path, text)?;
        let lines: Vec<&str> = text.lines().collect();
        let narrower = |tag: &Excuse| [Holds::Never, Holds::Narrow].contains(&tag.reason.holds);
        let told = |fault: &Fault| tags.iter().any(|tag| narrower(tag) && tag.is_about(fault));
        let mut found = vec![];
        for fault in faults::of(text).into_iter().filter(|fault| !told(fault)) {
            if let Some(pattern) = patterns::of(&lines, &fault) {
                let reason = reasons::of(pattern.tag).with_context(|| format!("no reason {:?}", pattern.tag))?;
                let Fault { kind, line, after, .. } = fault;
                found.push(Excuse { line, reason, kind: kind.to_string(), after: Some(after) });
            }
        }
        found.extend(tags);
        Ok(Self(found))
    }

    /// The name of what excuses a fault, or nothing.
    pub fn name(&self, fault: &Fault) -> String {
        self.find(fault, false).map_or(String::new(), |found| self.0[found].name())
    }

    /// The index of the first excuse for a fault. `wide`: subgroups have at least 32 threads.
    pub fn find(&self, fault: &Fault, wide: bool) -> Option<usize> {
        self.0.iter().position(|excuse| {
            let holds = excuse.reason.holds;
            excuse.is_about(fault) && holds != Holds::Never && !(wide && holds == Holds::Narrow)
        })
    }

    /// True if the faults of an excuse are planted.
    pub fn plants(&self, found: usize) -> bool {
        self.0[found].reason.holds != Holds::Unplanted
    }

    /// Prints the tags of these lines that are not `needed`, with their reasons. Returns their
    /// number. `needed`: the indices of the excuses that a fault needed.
    pub fn report_stale(&self, path: &str, lines: &RangeInclusive<usize>, needed: &BTreeSet<usize>) -> usize {
        let stale = self.tags_without(needed);
        let asked = stale.filter(|excuse| excuse.reason.holds == Holds::Always && lines.contains(&(excuse.line + 1)));
        asked
            .map(|excuse| println!("{path}:{}: stale: {}\n    {}", excuse.line + 1, excuse.name(), excuse.reason.why))
            .count()
    }

    /// Prints the tags of one kind of fault that are not `needed`, whether the fault is found by
    /// chance or not. Returns their number.
    pub fn report_stale_of(&self, path: &str, kind: &str, needed: &BTreeSet<usize>) -> usize {
        let stale = self.tags_without(needed).filter(|excuse| excuse.kind == kind);
        stale.map(|excuse| println!("{path}:{}: stale: {}", excuse.line + 1, excuse.name())).count()
    }

    fn tags_without(&self, needed: &BTreeSet<usize>) -> impl Iterator<Item = &Excuse> {
        let stale = self.0.iter().enumerate().filter(|(n, excuse)| excuse.after.is_none() && !needed.contains(n));
        stale.map(|(_, excuse)| excuse)
    }

    /// The tag of each excuse.
    #[cfg(test)]
    pub fn tags(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|excuse| excuse.reason.tag)
    }
}

impl Excuse {
    fn is_about(&self, fault: &Fault) -> bool {
        let planted = self.after.as_ref().is_none_or(|after| *after == fault.after);
        planted && self.line == fault.line && self.kind == fault.kind
    }

    fn name(&self) -> String {
        format!("{}: {}", self.reason.tag, self.kind)
    }
}

/// The tags of a file.
fn tags(path: &str, text: &str) -> anyhow::Result<Vec<Excuse>> {
    let mut found = vec![];
    for (n, line) in text.lines().enumerate() {
        let Some((before, tags)) = line.split_once(MARK) else { continue };
        let of = if before.trim().is_empty() { n + 1 } else { n };
        for part in tags.split(';') {
            let (tag, kinds) = part.split_once(':').unwrap_or((part, ""));
            let tag = tag.trim();
            let reason =
                reasons::of(tag).with_context(|| format!("{path}:{}: {tag:?} is not a tag of reasons.rs", n + 1))?;
            for kind in kinds.split(',').map(str::trim) {
                anyhow::ensure!(!kind.is_empty(), "{path}:{}: {tag:?} names no kind of fault", n + 1);
                found.push(Excuse { line: of, reason, kind: kind.to_string(), after: None });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Excuse, Excuses, Holds};
    use crate::faults::{self, Fault, patterns};

    /// Every tag must match a fault that no pattern and no earlier tag matches, and `seen` a fault
    /// that a pattern would. This check needs no device; a check that the fault survives would need
    /// one.
    #[test]
    fn every_tag_has_a_fault_of_its_line() {
        let mut idle = vec![];
        for path in crate::files::all().unwrap() {
            let text = crate::workspace::read(&path).unwrap();
            let (excuses, faults) = (Excuses::of(&path, &text).unwrap(), faults::of(&text));
            let lines: Vec<&str> = text.lines().collect();
            let has = |n: usize, excuse: &Excuse, fault: &Fault| match excuse.reason.holds {
                Holds::Never => excuse.is_about(fault) && patterns::of(&lines, fault).is_some(),
                _ => excuses.find(fault, false) == Some(n),
            };
            for (n, excuse) in excuses.0.iter().enumerate() {
                if !faults.iter().any(|fault| has(n, excuse, fault)) {
                    idle.push(format!("{path}:{}: {}", excuse.line + 1, excuse.name()));
                }
            }
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
        assert_eq!(
            read("\n    //~ twice: sign; race: component\n    x += y.x;\n"),
            [of(3, "twice: sign"), of(3, "race: component")]
        );
    }

    #[test]
    fn a_pattern_excuses_one_fault_of_its_line_where_no_tag_says_that_a_case_sees_it() {
        let names = |text: &str| {
            let excuses = Excuses::of("a.wgsl", text).unwrap();
            faults::of(text).iter().map(|fault| excuses.name(fault)).collect::<Vec<_>>()
        };
        let line = "let b = w_row(min(r + s, rows - 1u));";
        assert_eq!(names(&format!("{line}\n")), ["", "dropped: sign", "", ""]);
        assert_eq!(names(&format!("{line} //~ unowned: sign\n")), ["unowned: sign", "dropped: sign", "", ""]);
        assert_eq!(names(&format!("{line} //~ seen: sign\n")), ["", "", "", ""]);
        // Where subgroups are wide nothing excuses it.
        assert_eq!(names(&format!("{line} //~ apart: sign\n")), ["apart: sign", "apart: sign", "", ""]);
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

    #[test]
    fn a_tag_without_a_kind_of_fault_is_refused() {
        for tag in ["twice", "twice:", "twice: sign,", "twice: sign; small"] {
            let error = Excuses::of("a.wgsl", &format!("x += 1; //~ {tag}\n")).err().unwrap().to_string();
            assert!(error.starts_with("a.wgsl:1: ") && error.ends_with(" names no kind of fault"), "{error}");
        }
    }
}
