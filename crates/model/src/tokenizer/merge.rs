//! The merge loop of byte-pair encoding: merges the best pair of neighbours until no pair can
//! merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The id of a symbol that is not a token by itself.
pub(super) const NONE: u32 = u32::MAX;
const DEAD: u32 = u32::MAX - 1;
const END: usize = usize::MAX;

struct Symbol {
    id: u32,
    start: usize,
    prev: usize,
    next: usize,
}

/// Two neighbouring symbols: their ids, and the bytes of the word that they cover.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub left: u32,
    pub right: u32,
    pub start: usize,
    pub middle: usize,
    pub end: usize,
}

/// A pair that may merge. The order is lowest rank first, then leftmost.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u64,
    at: usize,
    left: u32,
    right: u32,
    merged: u32,
}

/// Symbols in a linked list, pairs in a heap. n symbols queue at most 3n pairs, so a word costs
/// O(n log n). Memory is reused for the next word.
#[derive(Default)]
pub(super) struct Merger {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<Candidate>>,
    /// Pairs taken from the queue so far: the measure of work.
    pub pops: usize,
}

impl Merger {
    pub fn clear(&mut self) {
        self.symbols.clear();
        self.queue.clear();
    }

    /// Appends a symbol that begins at byte `start` of the word.
    pub fn push(&mut self, id: u32, start: usize) {
        let at = self.symbols.len();
        if let Some(last) = self.symbols.last_mut() {
            last.next = at;
        }
        self.symbols.push(Symbol { id, start, prev: at.wrapping_sub(1), next: END });
    }

    /// Merges a word of `len` bytes. `rule` gives the rank and the id of two merged neighbours, if
    /// they may merge.
    pub fn run(&mut self, len: usize, rule: impl Fn(Pair) -> Option<(u64, u32)>) {
        for at in 0..self.symbols.len() {
            self.offer(at, len, &rule);
        }
        while let Some(Reverse(best)) = self.queue.pop() {
            self.pops += 1;
            let (id, right) = (self.symbols[best.at].id, self.symbols[best.at].next);
            if id != best.left || right == END || self.symbols[right].id != best.right {
                continue;
            }
            let after = self.symbols[right].next;
            self.symbols[right].id = DEAD;
            self.symbols[best.at].id = best.merged;
            self.symbols[best.at].next = after;
            if after != END {
                self.symbols[after].prev = best.at;
                self.offer(best.at, len, &rule);
            }
            if self.symbols[best.at].prev != END {
                self.offer(self.symbols[best.at].prev, len, &rule);
            }
        }
    }

    /// Queues the pair that begins at `at`, if it may merge.
    fn offer(&mut self, at: usize, len: usize, rule: impl Fn(Pair) -> Option<(u64, u32)>) {
        let left = &self.symbols[at];
        let Some(right) = self.symbols.get(left.next) else { return };
        let end = self.symbols.get(right.next).map_or(len, |after| after.start);
        let pair = Pair { left: left.id, right: right.id, start: left.start, middle: right.start, end };
        let candidate = rule(pair).map(|(rank, merged)| Candidate { rank, at, left: left.id, right: right.id, merged });
        self.queue.extend(candidate.map(Reverse));
    }

    /// The remaining symbols: each with its id (or `NONE`) and its range of bytes.
    pub fn symbols(&self, len: usize) -> impl Iterator<Item = (u32, Range<usize>)> {
        let mut at = if self.symbols.is_empty() { END } else { 0 };
        std::iter::from_fn(move || {
            let symbol = self.symbols.get(at)?;
            at = symbol.next;
            let end = self.symbols.get(at).map_or(len, |after| after.start);
            Some((symbol.id, symbol.start..end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merges two equal ids to their double. Ids are powers of two, and lower ones merge first.
    fn doubled(pair: Pair) -> Option<(u64, u32)> {
        (pair.left == pair.right && pair.left < 1 << 20).then_some((pair.left as u64, pair.left * 2))
    }

    fn merged(ids: &[u32]) -> (Vec<u32>, usize) {
        let mut merger = Merger::default();
        ids.iter().enumerate().for_each(|(at, &id)| merger.push(id, at));
        merger.run(ids.len(), doubled);
        (merger.symbols(ids.len()).map(|(id, _)| id).collect(), merger.pops)
    }

    #[test]
    fn empty_and_single_words_stay() {
        assert!(merged(&[]).0.is_empty());
        assert_eq!(merged(&[1]).0, [1]);
    }

    #[test]
    fn equal_ranks_join_from_the_left() {
        assert_eq!(merged(&[1, 1, 1]).0, [2, 1]);
        assert_eq!(merged(&[1; 7]).0, [4, 2, 1]);
    }

    #[test]
    fn ranges_cover_the_word_without_gaps() {
        let mut merger = Merger::default();
        [0, 1, 2, 4].into_iter().for_each(|start| merger.push(1, start));
        merger.run(7, |pair| if pair.left == 1 { doubled(pair) } else { None });
        let ranges: Vec<_> = merger.symbols(7).collect();
        assert_eq!(ranges, [(2, 0..2), (2, 2..7)]);
    }

    #[test]
    fn work_on_one_long_word_stays_linear_in_pairs() {
        let ids = vec![1; 1 << 18];
        let (symbols, pops) = merged(&ids);
        assert_eq!(symbols, [1 << 18]);
        assert!(pops <= 3 * ids.len(), "{pops} pairs for {} symbols", ids.len());
    }
}
