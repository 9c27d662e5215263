//! One sequence: its token ids, and how many of them the states hold.

use crate::error::Error;
use kernels::StateKind;

/// A sliding window whose last rows are in a ring.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Positions that a row attends to, its own included.
    pub window: usize,
    /// Positions that the ring holds.
    pub rows: usize,
    /// The first position whose row is not overwritten by a later one.
    pub oldest: usize,
}

impl Ring {
    /// Whether the ring still has all keys that a row at `position` attends to.
    fn serves(&self, position: usize) -> bool {
        self.oldest == 0 || self.oldest + self.window <= position + 1
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// The fed and the sampled tokens, in order.
    pub tokens: Vec<u32>,
    /// Positions whose keys and values the states hold. It exceeds the length of `tokens` while
    /// steps run ahead of reading their results.
    pub evaluated: usize,
    /// The rings among the states, without duplicates.
    pub rings: Vec<Ring>,
}

impl Sequence {
    /// An empty sequence over states of these kinds, each with the length of its window, if any.
    pub fn new(states: impl Iterator<Item = (StateKind, Option<u32>)>) -> Self {
        let mut rings = vec![];
        for (kind, window) in states {
            if let (StateKind::Kv { ring: Some(rows), .. }, Some(window)) = (kind, window) {
                let ring = Ring { window: window as usize, rows: rows as usize, oldest: 0 };
                if !rings.contains(&ring) {
                    rings.push(ring);
                }
            }
        }
        Self { rings, ..Self::default() }
    }

    /// Appends all ids; on an error none.
    pub fn feed(&mut self, ids: &[u32], vocabulary: u32, context: usize) -> Result<(), Error> {
        known(ids, vocabulary)?;
        let needed = self.tokens.len() + ids.len();
        if needed > context {
            return Err(Error::ContextOverflow { needed, limit: context });
        }
        self.tokens.extend_from_slice(ids);
        Ok(())
    }

    /// Forgets everything after the first `tokens` tokens.
    pub fn rollback(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
        self.settle();
    }

    /// Marks all positions as not evaluated. The tokens stay.
    pub fn stale(&mut self) {
        self.evaluated = 0;
    }

    /// Drops the steps that ran ahead of the tokens.
    pub fn settle(&mut self) {
        self.rewind(self.tokens.len());
    }

    /// Makes sure that a token is left to evaluate, because sampling needs a row. If all tokens are
    /// evaluated, the last is evaluated again.
    pub fn reread(&mut self) {
        self.rewind(self.tokens.len().saturating_sub(1));
    }

    /// Marks the positions up to `until` as written. A step writes them even if it fails.
    pub fn write(&mut self, until: usize) {
        for ring in &mut self.rings {
            let oldest = if self.evaluated == 0 { 0 } else { ring.oldest };
            ring.oldest = oldest.max(until.saturating_sub(ring.rows));
        }
    }

    /// Goes back to `position`. If a ring has lost keys that the row there attends to, goes back to
    /// the start.
    fn rewind(&mut self, position: usize) {
        if position < self.evaluated {
            self.evaluated = if self.rings.iter().all(|ring| ring.serves(position)) { position } else { 0 };
        }
    }
}

/// Refuses ids outside the vocabulary.
pub(crate) fn known(ids: &[u32], vocabulary: u32) -> Result<(), Error> {
    match ids.iter().find(|&&id| id >= vocabulary) {
        Some(&id) => Err(Error::TokenId { id, vocabulary }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence with `until` positions written.
    fn written(until: usize) -> Sequence {
        let rings = vec![Ring { window: 8, rows: 20, oldest: 0 }];
        let mut sequence = Sequence { tokens: vec![0; until], evaluated: 0, rings };
        sequence.write(until);
        sequence.evaluated = until;
        sequence
    }

    #[test]
    fn a_rollback_within_the_slack_of_a_ring_keeps_what_is_evaluated_and_one_beyond_it_nothing() {
        // The ring holds positions 80 to 99; the row at 87 attends to 80 to 87.
        for (to, evaluated) in [(99, 99), (87, 87), (86, 0), (3, 0)] {
            let mut sequence = written(100);
            sequence.rollback(to);
            assert_eq!((sequence.evaluated, sequence.tokens.len()), (evaluated, to));
        }
        let mut whole = written(20);
        whole.rollback(3);
        assert_eq!(whole.evaluated, 3, "nothing was lost");
    }

    #[test]
    fn what_was_lost_stays_lost_until_it_is_read_again() {
        let mut sequence = written(100);
        sequence.rollback(90);
        sequence.tokens.resize(95, 0);
        sequence.write(95);
        sequence.evaluated = 95;
        sequence.rollback(86);
        assert_eq!(sequence.evaluated, 0, "the ring's rows were taken by positions up to 99");
        sequence.write(30);
        sequence.evaluated = 30;
        sequence.rollback(17);
        assert_eq!(sequence.evaluated, 17, "10 to 29 are held");
    }

    #[test]
    fn steps_that_ran_ahead_count_as_written() {
        let mut sequence = written(100);
        sequence.write(104);
        sequence.evaluated = 104;
        sequence.settle();
        assert_eq!(sequence.evaluated, 100);
        sequence.rollback(90);
        assert_eq!(sequence.evaluated, 0, "84 to 103 are held, and the row at 90 sees 83");
    }
}
