//! Texts as ids, some of which are learnt.

use super::options::Learn;
use crate::batch::{Document, NO_TARGET};

/// A text as ids, each with the factor on its loss; 0 for an id that is not learnt.
#[derive(Debug, Default)]
pub(super) struct Marked {
    pub ids: Vec<u32>,
    pub weights: Vec<f32>,
}

impl Marked {
    pub fn extend(&mut self, ids: &[u32], weight: f32) {
        self.ids.extend_from_slice(ids);
        self.weights.resize(self.ids.len(), weight);
    }

    /// Leaves out the ids behind the last one that is learnt.
    pub fn trim(&mut self) {
        let end = self.weights.iter().rposition(|weight| *weight > 0.0).map_or(0, |last| last + 1);
        self.ids.truncate(end);
        self.weights.truncate(end);
    }

    /// The document in which the learnt ids are targets, up to the last of them.
    pub fn document(mut self, learn: Learn) -> Document {
        if learn == Learn::All {
            self.weights.fill(1.0);
        }
        self.trim();
        let behind = self.ids.iter().zip(&self.weights).skip(1);
        let targets = behind.map(|(&id, weight)| if *weight > 0.0 { id } else { NO_TARGET }).collect();
        self.ids.pop();
        let mut weights = self.weights.split_off(self.weights.len().min(1));
        if weights.iter().all(|weight| [0.0, 1.0].contains(weight)) {
            weights.clear();
        }
        Document { ids: self.ids, targets, weights, ..Document::default() }
    }
}
