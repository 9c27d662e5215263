//! Batches of examples over epochs.

use super::Data;
use crate::batch::Document;
use crate::checkpoint::Facts;
use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// Batches of examples, epoch after epoch. No batch has examples of two epochs, so the last one of
/// an epoch may be smaller.
pub struct Batches {}

/// A place between two batches. As text: `epoch 2, example 48`, both from 0.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub epoch: u64,
    /// Examples of the epoch that are done.
    pub example: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}, example {}", self.epoch, self.example)
    }
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        todo!("{text}")
    }
}

impl Batches {
    /// Batches of `size` examples, in an order that `seed` and the number of the epoch decide.
    #[must_use]
    pub fn new(data: Data, size: u32, seed: u64) -> Self {
        todo!()
    }

    /// The same in the order of the files, in every epoch.
    #[must_use]
    pub fn in_order(self) -> Self {
        todo!()
    }

    /// Batches of an epoch.
    #[must_use]
    pub fn per_epoch(&self) -> u64 {
        todo!()
    }

    /// The documents of the next batch. There is always a next one.
    ///
    /// # Errors
    /// As [`Data::documents`]. The position stays.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Vec<Document>, Error> {
        todo!()
    }

    /// The place behind the last batch.
    #[must_use]
    pub fn position(&self) -> Position {
        todo!()
    }

    /// Goes on at a place.
    ///
    /// # Errors
    /// [`Error::Position`] for a place that these batches do not have.
    pub fn seek(&mut self, position: Position) -> Result<(), Error> {
        todo!()
    }

    /// What the batches depend on, for checkpoints: [`Data::facts`], the size, the order.
    #[must_use]
    pub fn facts(&self) -> Facts {
        todo!()
    }
}
