//! What changes from step to step.

use crate::graph::sampling::SampleParams;
use crate::graph::tensor::Counts;

/// What changes from step to step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepInput {
    /// The position of each row in its sequence; their number is T.
    pub positions: Vec<u32>,
    /// The sequence slot of each row.
    pub sequences: Vec<u32>,
    /// The first position each row does not see, of recordings of documents the first row; only for recordings with bidirectional attention.
    pub ends: Vec<u32>,
    /// The id of each row; only for recordings of documents.
    pub ids: Vec<u32>,
    /// The first row of each row's document; only for recordings of documents.
    pub firsts: Vec<u32>,
    /// Which rows get logits.
    pub out_rows: Vec<u32>,
    /// How ids are drawn, per row of logits; only for recordings that sample.
    pub sampling: Vec<SampleParams>,
    /// The free inputs, by number.
    pub host: Vec<Vec<f32>>,
}

impl StepInput {
    pub(crate) fn counts(&self) -> Counts {
        Counts { step: self.positions.len() as u32, out: self.out_rows.len() as u32 }
    }
}
