//! The accesses to each word of memory, and the pairs of accesses that nothing orders.
//!
//! Writes of an equal word by several invocations are no race here: the word is the same, whichever
//! write is the last. A read that nothing orders with one of them is a race.

use std::collections::BTreeSet;

/// The kind of an access. Two reads, or two atomic additions, may happen in any order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Read,
    Write,
    /// An atomic addition.
    Add,
}

/// Who accesses memory, and when.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The number of the interval between two barriers of the workgroup; 0 for no access.
    pub era: u32,
    /// The invocation, or with [`WHOLE`] a subgroup of which any invocation may be the one.
    pub who: u32,
    pub subgroup: u32,
    /// The number of barriers of the subgroup before it.
    pub turn: u32,
    /// The offset in the text.
    pub at: u32,
}

/// The bit of a subgroup that accesses memory as a whole, through a cooperative matrix. The
/// invocation that accesses an element is not known, so two such accesses are never ordered by the
/// order of the code.
pub const WHOLE: u32 = 1 << 31;

impl Mark {
    /// Whether this earlier access is ordered before a later one.
    fn before(self, later: Self) -> bool {
        self.era != later.era
            || (self.who == later.who && self.who & WHOLE == 0)
            || (self.subgroup == later.subgroup && self.turn < later.turn)
    }
}

/// The accesses to a word that a later access may still race with.
#[derive(Copy, Clone, Debug, Default)]
struct Word {
    writes: Pair,
    reads: Pair,
    adds: Pair,
}

/// Two accesses of one kind. Whatever races with any access of the kind races with one of them:
/// they are of two subgroups, or of the only subgroup that has accessed the word, and its latest.
#[derive(Copy, Clone, Debug, Default)]
struct Pair([Mark; 2]);

impl Pair {
    fn note(&mut self, new: Mark) {
        let [last, other] = self.0;
        let counts = |mark: &Mark| mark.era == new.era && (mark.who != new.who || mark.who & WHOLE != 0);
        let kept =
            [last, other].into_iter().filter(counts).max_by_key(|mark| (mark.subgroup != new.subgroup, mark.turn));
        self.0 = [new, kept.unwrap_or_default()];
    }

    fn unordered(&self, later: Mark) -> Option<Mark> {
        self.0.into_iter().find(|mark| mark.era != 0 && !mark.before(later))
    }
}

/// The accesses to every word of some memory.
#[derive(Default)]
pub struct Shadow {
    words: Vec<Word>,
    /// The offsets in the text at which several invocations write equal words.
    pub equal: BTreeSet<u32>,
}

impl Shadow {
    pub fn new(words: usize) -> Self {
        Self { words: vec![Word::default(); words], equal: BTreeSet::new() }
    }

    /// Notes an access. Returns an earlier access that nothing orders before it. `equal`: a write
    /// does not change the word.
    pub fn note(&mut self, word: usize, act: Act, mark: Mark, equal: bool) -> Option<(Act, Mark)> {
        let word = &mut self.words[word];
        let [written, read, added] = [&word.writes, &word.reads, &word.adds].map(|pair| pair.unordered(mark));
        match act {
            Act::Read => word.reads.note(mark),
            Act::Write => word.writes.note(mark),
            Act::Add => word.adds.note(mark),
        }
        if written.is_some() && equal {
            self.equal.insert(mark.at);
        }
        let of = |act: Act, found: Option<Mark>| found.map(|mark| (act, mark));
        let written = of(Act::Write, written.filter(|_| !equal));
        written.or(of(Act::Read, read.filter(|_| act != Act::Read))).or(of(Act::Add, added.filter(|_| act != Act::Add)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, Mark, Shadow, WHOLE};

    fn mark(era: u32, who: u32, turn: u32) -> Mark {
        Mark { era, who, subgroup: who % WHOLE / 4, turn, at: 0 }
    }

    /// Whether the last of these accesses to one word races with another.
    fn races(of: &[(Act, Mark)]) -> bool {
        let mut shadow = Shadow::new(1);
        let mut last = false;
        for &(act, mark) in of {
            last = shadow.note(0, act, mark, false).is_some();
        }
        last
    }

    #[test]
    fn an_access_races_with_a_write_of_another_invocation_in_the_same_interval() {
        use Act::{Add, Read, Write};
        for (second, race) in [(Read, true), (Write, true), (Add, true)] {
            assert_eq!(races(&[(Write, mark(1, 0, 0)), (second, mark(1, 1, 0))]), race);
            assert!(!races(&[(Write, mark(1, 0, 0)), (second, mark(1, 0, 0))]), "its own");
            assert!(!races(&[(Write, mark(1, 0, 0)), (second, mark(2, 1, 0))]), "behind a barrier");
        }
        assert!(!races(&[(Read, mark(1, 0, 0)), (Read, mark(1, 1, 0))]));
        assert!(!races(&[(Add, mark(1, 0, 0)), (Add, mark(1, 1, 0))]));
        assert!(races(&[(Add, mark(1, 0, 0)), (Read, mark(1, 1, 0))]));
        assert!(races(&[(Read, mark(1, 0, 0)), (Add, mark(1, 1, 0))]));
    }

    #[test]
    fn equal_writes_race_with_reads_alone() {
        let mut shadow = Shadow::new(1);
        assert!(shadow.note(0, Act::Write, mark(1, 0, 0), false).is_none());
        assert!(shadow.note(0, Act::Write, Mark { at: 7, ..mark(1, 1, 0) }, true).is_none());
        assert_eq!(shadow.equal.iter().collect::<Vec<_>>(), [&7]);
        assert!(shadow.note(0, Act::Read, mark(1, 1, 0), false).is_some(), "the write of the other");
        assert!(shadow.note(0, Act::Write, mark(2, 1, 0), true).is_none());
        assert_eq!(shadow.equal.len(), 1, "alone in its interval");
    }

    #[test]
    fn a_barrier_of_a_subgroup_orders_its_own_invocations_alone() {
        use Act::{Read, Write};
        assert!(!races(&[(Write, mark(1, 0, 0)), (Read, mark(1, 1, 1))]));
        assert!(races(&[(Write, mark(1, 0, 0)), (Read, mark(1, 4, 1))]));
    }

    #[test]
    fn of_many_readers_any_may_race_with_a_writer() {
        use Act::{Read, Write};
        let read = |who, turn| (Read, mark(1, who, turn));
        assert!(races(&[read(0, 0), read(1, 0), read(2, 0), (Write, mark(1, 2, 0))]));
        assert!(!races(&[read(0, 0), read(1, 0), (Write, mark(1, 2, 1))]));
        assert!(races(&[read(0, 0), read(1, 1), (Write, mark(1, 2, 1))]));
        assert!(
            races(&[read(0, 0), read(4, 0), read(5, 0), (Write, mark(1, 5, 1))]),
            "the reader of the other subgroup"
        );
    }

    #[test]
    fn a_matrix_is_ordered_with_its_own_subgroup_by_barriers_alone() {
        use Act::{Read, Write};
        assert!(races(&[(Write, mark(1, WHOLE, 0)), (Read, mark(1, WHOLE, 0))]));
        assert!(races(&[(Write, mark(1, WHOLE, 0)), (Read, mark(1, 0, 0))]));
        assert!(!races(&[(Write, mark(1, WHOLE, 0)), (Read, mark(1, WHOLE, 1))]));
    }
}
