//! Batches of examples over epochs.

use super::files::Data;
use super::order::Order;
use crate::batch::Document;
use crate::checkpoint::Facts;
use crate::error::Error;
use std::fmt;
use std::str::FromStr;

/// Batches of examples, epoch after epoch without end. No batch has examples of two epochs, so the
/// last one of an epoch may be smaller.
pub struct Batches {
    data: Data,
    size: u64,
    /// Absent if examples keep the order of their files.
    seed: Option<u64>,
    position: Position,
}

/// A place between two batches. As text: `epoch 2, example 48`, both from 0.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub epoch: u64,
    /// Examples of the epoch that are done; fewer than it has.
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
        let numbers = text.strip_prefix("epoch ").and_then(|rest| rest.split_once(", example "));
        let position = numbers
            .and_then(|(epoch, example)| Some(Self { epoch: epoch.parse().ok()?, example: example.parse().ok()? }));
        position.ok_or_else(|| Error::Position {
            position: text.to_string(),
            reason: "it is no text like \"epoch 2, example 48\"",
        })
    }
}

impl Batches {
    /// Batches of `size` examples, at least 1, in an order that `seed` and the epoch decide.
    #[must_use]
    pub fn new(data: Data, size: u32, seed: u64) -> Self {
        Self { data, size: u64::from(size.max(1)), seed: Some(seed), position: Position::default() }
    }

    /// These batches with the examples in the order of the files, in every epoch.
    #[must_use]
    pub fn in_order(self) -> Self {
        Self { seed: None, ..self }
    }

    /// The examples.
    #[must_use]
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Batches of an epoch.
    #[must_use]
    pub fn per_epoch(&self) -> u64 {
        self.data.len().div_ceil(self.size)
    }

    /// The documents of the next batch. There is always a next one.
    ///
    /// # Errors
    /// As [`Data::documents`]. The position stays.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Vec<Document>, Error> {
        let (len, Position { epoch, example }) = (self.data.len(), self.position);
        let order = self.seed.map_or(Order::Given, |seed| Order::Shuffled { seed, epoch });
        let end = len.min(example + self.size);
        let mut documents = vec![];
        for position in example..end {
            documents.extend(self.data.documents(order.at(position, len))?);
        }
        self.position =
            if end == len { Position { epoch: epoch + 1, example: 0 } } else { Position { epoch, example: end } };
        Ok(documents)
    }

    /// The position behind the last batch.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Goes on at a position.
    ///
    /// # Errors
    /// [`Error::Position`] for a position at which no batch begins.
    pub fn seek(&mut self, position: Position) -> Result<(), Error> {
        let refused = |reason| Err(Error::Position { position: position.to_string(), reason });
        if position.example >= self.data.len() {
            return refused("an epoch has fewer examples");
        }
        if !position.example.is_multiple_of(self.size) {
            return refused("batches have another size");
        }
        self.position = position;
        Ok(())
    }

    /// What the batches depend on, for checkpoints: [`Data::facts`], the size, the order.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let mut facts = self.data.facts();
        facts.insert("batch".to_string(), self.size.to_string());
        let order = self.seed.map_or("as given".to_string(), |seed| format!("shuffled by seed {seed}"));
        facts.insert("order".to_string(), order);
        facts
    }
}
