//! The outcome of planted faults.

use std::collections::BTreeSet;

/// The outcome of the faults of one file or of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub red: usize,
    pub excused: usize,
    pub survived: usize,
    /// Excuses that no fault needed.
    pub stale: usize,
}

impl Tally {
    pub fn plus(&mut self, other: &Self) {
        self.red += other.red;
        self.excused += other.excused;
        self.survived += other.survived;
        self.stale += other.stale;
    }

    pub fn planted(&self) -> usize {
        self.red + self.excused + self.survived
    }

    pub fn holds(&self) -> bool {
        self.survived == 0 && self.stale == 0
    }

    pub fn print(&self, name: &str, note: &str) {
        let Self { red, excused, survived, stale } = self;
        println!("{name:<44} {red:>6} {excused:>7} {survived:>8} {stale:>5}{note}");
    }

    pub fn text(&self) -> String {
        let Self { red, excused, survived, stale } = self;
        format!("{red}\t{excused}\t{survived}\t{stale}")
    }

    pub fn read(text: &str) -> Option<Self> {
        let numbers: Vec<usize> = text.split('\t').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let [red, excused, survived, stale] = numbers[..] else { return None };
        Some(Self { red, excused, survived, stale })
    }
}

/// The outcome of some faults.
#[derive(Default)]
pub struct Outcome {
    pub tally: Tally,
    /// The indices of the excuses that a fault needed.
    pub needed: BTreeSet<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_read_as_it_is_written() {
        let tally = Tally { red: 31, excused: 4, survived: 0, stale: 1 };
        assert_eq!(Tally::read(&tally.text()), Some(tally));
        assert_eq!(Tally::read("31\t4\t0"), None);
        assert_eq!(Tally::read("31\t4\t0\tx"), None);
    }
}
