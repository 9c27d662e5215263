//! The inputs that change from step to step.

use crate::graph::sampling::SampleParams;
use crate::graph::tensor::Counts;

/// The inputs of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepInput {
    /// The position of each row in its sequence. Their number is T.
    pub positions: Vec<u32>,
    /// The sequence slot of each row.
    pub sequences: Vec<u32>,
    /// The first position that each row does not see; in recordings of documents, the first row.
    /// Only recordings with bidirectional attention read it.
    pub ends: Vec<u32>,
    /// The id of each row; only for recordings of documents.
    pub ids: Vec<u32>,
    /// The first row of each row's document; only for recordings of documents.
    pub firsts: Vec<u32>,
    /// The rows that get logits.
    pub out_rows: Vec<u32>,
    /// The id that each of these rows should have given; an id of the vocabulary's size or more has
    /// no loss. Only recordings of a loss read it.
    pub targets: Vec<u32>,
    /// The factor on the loss of each of these rows. Only recordings of a loss read it.
    pub loss_weights: Vec<f32>,
    /// How the next id is drawn, per row of logits. Only recordings that sample read it.
    pub sampling: Vec<SampleParams>,
    /// The free inputs, by number.
    pub host: Vec<Vec<f32>>,
}

impl StepInput {
    pub(crate) fn counts(&self) -> Counts {
        Counts { step: self.positions.len() as u32, out: self.out_rows.len() as u32 }
    }

    /// The words of [`Input::Spans`](crate::Input::Spans). Without `ends`, a row does not see the
    /// rows behind it.
    pub(crate) fn spans(&self) -> Vec<u32> {
        let mut after = vec![0; self.firsts.len()];
        for t in (0..self.firsts.len()).rev() {
            let last = t + 1 == self.firsts.len() || self.firsts[t + 1] != self.firsts[t];
            after[t] = if last { t as u32 + 1 } else { after[t + 1] };
        }
        let end = |t: usize| self.ends.get(t).copied().unwrap_or(t as u32 + 1);
        (0..self.firsts.len()).flat_map(|t| [self.firsts[t], after[t], end(t)]).collect()
    }
}

/// Whether rows are each of another sequence.
pub(crate) fn apart(sequences: &[u32]) -> bool {
    sequences.iter().enumerate().all(|(row, of)| !sequences[..row].contains(of))
}

/// Whether several rows of a step are of one sequence, and all rows are at or after a position.
pub(crate) fn is_deep(from: u32, positions: &[u32], sequences: &[u32]) -> bool {
    positions.iter().all(|&at| at >= from) && !apart(sequences)
}
