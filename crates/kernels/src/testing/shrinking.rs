//! How proptest shrinks a case.

use crate::kernel::random::Fill;
use crate::testing::drawn::Drawn;
use proptest::strategy::ValueTree;
use std::collections::VecDeque;

/// A change of a case that may make it simpler.
#[derive(Copy, Clone)]
enum Move {
    /// The simplest of all choices in a range.
    Simplest(usize, usize),
    Choose(usize, u32),
    Fill(usize, Fill),
    /// The first seed.
    Seed,
}

/// A failing case with the changes that have not been tried. Choices shrink first: shapes and rows.
/// Then the blocks of values do. If a block did, choices may shrink again.
pub struct Shrinking {
    /// The simplest case so far that fails.
    best: Drawn,
    /// The lengths of its blocks.
    blocks: Vec<u32>,
    /// The case that is tried, with the lengths of its blocks and the move to it.
    tried: (Drawn, Vec<u32>),
    by: Option<Move>,
    moves: VecDeque<Move>,
    /// Whether the moves are about values.
    values: bool,
    /// Whether a move of these moves made the case simpler, and whether a move about values did.
    shrank: bool,
    filled: bool,
}

impl Shrinking {
    /// The shrinking of a case.
    ///
    /// # Panics
    /// When no operation has its stem.
    #[must_use]
    pub fn of(drawn: Drawn) -> Self {
        let (best, blocks) = drawn.settled(None);
        let mut of = Self {
            tried: (best.clone(), blocks.clone()),
            best,
            blocks,
            by: None,
            moves: VecDeque::new(),
            values: false,
            shrank: false,
            filled: false,
        };
        of.list();
        of
    }

    /// Lists the moves from the best case.
    fn list(&mut self) {
        self.shrank = false;
        self.moves.clear();
        if self.values {
            for (at, &length) in self.blocks.iter().enumerate() {
                let fills = match self.best.fills.get(at).copied().unwrap_or_default() {
                    Fill::Any => vec![Fill::Zero, Fill::Equal, Fill::Quarters],
                    Fill::Quarters => vec![Fill::Zero, Fill::Equal],
                    Fill::Equal if length > 1 => {
                        vec![Fill::Zero, Fill::Only(0, length / 2), Fill::Only(length / 2, length)]
                    }
                    Fill::Only(from, to) if to - from > 1 => {
                        let middle = from.midpoint(to);
                        vec![Fill::Zero, Fill::Only(from, middle), Fill::Only(middle, to)]
                    }
                    Fill::Equal | Fill::Only(..) => vec![Fill::Zero],
                    Fill::Zero => vec![],
                };
                self.moves.extend(fills.into_iter().map(|fill| Move::Fill(at, fill)));
            }
            self.moves.push_back(Move::Seed);
            return;
        }
        let count = self.best.choices.len();
        let mut size = count;
        while size > 1 {
            self.moves.extend((0..count).step_by(size).map(|from| Move::Simplest(from, from + size)));
            size = size.div_ceil(2);
        }
        for (at, &choice) in self.best.choices.iter().enumerate().filter(|(_, choice)| **choice > 0) {
            let mut less = vec![0, choice / 2, choice - 1];
            less.dedup();
            self.moves.extend(less.into_iter().map(|choice| Move::Choose(at, choice)));
        }
    }

    /// The best case after a move, if that is simpler.
    fn moved(&self, by: Move) -> Option<Drawn> {
        let mut drawn = self.best.clone();
        match by {
            Move::Simplest(from, to) => {
                let to = to.min(drawn.choices.len());
                drawn.choices.get_mut(from..to)?.fill(0);
            }
            Move::Choose(at, choice) => {
                let of = drawn.choices.get_mut(at).filter(|of| **of > choice)?;
                *of = choice;
            }
            Move::Fill(at, fill) => {
                drawn.fills.resize(drawn.fills.len().max(at + 1), Fill::Any);
                drawn.fills[at] = fill;
            }
            Move::Seed => drawn.seed = 0,
        }
        (drawn != self.best).then_some(drawn)
    }

    /// Goes to the next case to try. Returns false at the end, and stays at the best case.
    fn next(&mut self) -> bool {
        loop {
            while let Some(by) = self.moves.pop_front() {
                if let Some(drawn) = self.moved(by) {
                    self.tried = drawn.settled(None);
                    self.by = Some(by);
                    return true;
                }
            }
            match (self.shrank, self.values) {
                (true, _) => {}
                (false, false) => self.values = true,
                (false, true) if self.filled => (self.values, self.filled) = (false, false),
                (false, true) => break,
            }
            self.list();
        }
        self.tried = (self.best.clone(), self.blocks.clone());
        false
    }
}

impl ValueTree for Shrinking {
    type Value = Drawn;

    fn current(&self) -> Drawn {
        self.tried.0.clone()
    }

    fn simplify(&mut self) -> bool {
        if self.tried.0 != self.best {
            (self.best, self.blocks) = self.tried.clone();
            self.shrank = true;
            self.filled |= self.values;
            // The simplest form of a block comes first.
            let at = |by: Option<&Move>| if let Some(Move::Fill(at, _)) = by { Some(*at) } else { None };
            if let Some(done) = at(self.by.as_ref()) {
                self.moves.retain(|by| at(Some(by)) != Some(done));
            }
        }
        self.next()
    }

    fn complicate(&mut self) -> bool {
        self.next()
    }
}
