//! Faults that no parity case shows, each with the reason.

mod attention;
mod products;
mod rows;
mod sampling;

use super::faults::Fault;

/// Faults in lines that contain `line`, which leave every result as it is.
pub struct Allowed {
    pub file: &'static str,
    /// The kind of fault; empty for every kind.
    pub fault: &'static str,
    pub line: &'static str,
    /// Why it is harmless; read by people.
    pub why: &'static str,
}

const fn allow(file: &'static str, fault: &'static str, line: &'static str, why: &'static str) -> Allowed {
    Allowed { file, fault, line, why }
}

const RACES: &str = "two write the same place, and it is chance whose value stays";
const UNSEEN: &str = "whether a subgroup is so late or so early that another's value is missed is chance";
/// No reason where subgroups have 32 threads.
const APART: &str = "without subgroups of 32 threads neighbours share nothing";
/// Such faults may be seen or not, so that an entry for them is never stale.
pub const CHANCE: [&str; 3] = [RACES, UNSEEN, APART];
/// Such faults are not planted.
pub const ENDLESS: &str = "a walk over as many keys as a number can count keeps a GPU from everything else";
const TWICE: &str = "every thread holds the same result, so any of them may store it, or all";
const WHOLE: &str = "grids of plans that write states come out whole below 65,535 rows, so there is no workgroup past the end";
const SPARE: &str = "the sums of the upper half are spare; on hardware this races, lavapipe runs lanes in step and subgroups in order";
const EXIT: &str = "leaving early spares work: every store has a guard of its own";
const DROPPED: &str = "what threads past the end load is dropped";
const CLAMPED: &str = "an index past the end is clamped to the last, which stores its result twice";
const EMPTY: &str = "a turn past the last has nothing to add or to store";
const SCALED: &str = "states without scales do not look at the largest";
const UNOWNED: &str = "rows of other parts and past the end make results that are not stored";
const ALIKE: &str = "neighbours hold the same by then, so that either will do";
const EVEN: &str = "cooperative loads begin at multiples of 16 bytes, here at the one before";
const EIGHT: &str = "the eight threads of a block run in step, as part of one subgroup, wherever subgroups have eight threads or more";
const LATER: &str = "the part that owns the row comes later and writes it again";

/// All of them. An entry that names no fault fails the run.
pub fn all() -> impl Iterator<Item = &'static Allowed> {
    [attention::ALLOWED, products::ALLOWED, rows::ALLOWED, sampling::ALLOWED].into_iter().flatten()
}

/// The entry that allows this fault, by its place among all, where subgroups have 32 threads or not.
pub fn find(path: &str, fault: &Fault, wide: bool) -> Option<usize> {
    all().position(|a| {
        !(wide && a.why == APART) && a.file == path && (a.fault.is_empty() || a.fault == fault.kind) && fault.before.contains(a.line)
    })
}

#[cfg(test)]
mod tests {
    use super::super::faults;
    use super::{all, find};

    /// Whether it survives needs a device; that there is such a fault, which no entry before allows, does not.
    #[test]
    fn every_entry_allows_a_fault_of_its_file() {
        let idle = |n: usize, file: &str| {
            let text = crate::read(file).unwrap_or_else(|e| panic!("{e:#}"));
            !faults::of(&text).iter().any(|fault| find(file, fault, false) == Some(n))
        };
        let idle: Vec<_> = all().enumerate().filter(|(n, a)| idle(*n, a.file)).map(|(_, a)| (a.file, a.fault, a.line)).collect();
        assert!(idle.is_empty(), "{idle:#?}");
    }
}
