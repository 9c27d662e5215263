//! Examples as token ids, and their packing into steps.

use crate::error::Error;
use kernels::StepInput;

/// A target that asks for no loss.
pub const NO_TARGET: u32 = u32::MAX;

/// One example. No document attends to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    pub ids: Vec<u32>,
    /// The id that should follow each of `ids`. An id outside the vocabulary, such as
    /// [`NO_TARGET`], asks for no loss.
    pub targets: Vec<u32>,
    /// The factor on the loss of each target; empty for 1.
    pub weights: Vec<f32>,
}

impl Document {
    fn check(&self, document: usize, vocabulary: u32, capacity: u32) -> Result<(), Error> {
        let (ids, targets, weights) = (self.ids.len(), self.targets.len(), self.weights.len());
        if ids == 0 || targets != ids || ![0, ids].contains(&weights) {
            return Err(Error::Lengths { document, ids, targets, weights });
        }
        if let Some(&id) = self.ids.iter().find(|&&id| id >= vocabulary) {
            return Err(Error::Id { document, id, vocabulary });
        }
        if ids > capacity as usize {
            return Err(Error::TooLong { document, rows: ids, capacity });
        }
        Ok(())
    }

    fn weight(&self, t: usize) -> f32 {
        self.weights.get(t).copied().unwrap_or(1.0)
    }
}

/// The inputs of the steps for a batch.
pub(crate) struct Packed {
    pub steps: Vec<StepInput>,
    /// Number of targets with a loss.
    pub targets: u64,
}

/// Packs whole documents into steps of up to `capacity` rows, in order. The loss is the mean over
/// all targets of the batch, weighted.
pub(crate) fn pack(documents: &[Document], vocabulary: u32, capacity: u32) -> Result<Packed, Error> {
    let (mut steps, mut step) = (vec![], StepInput::default());
    let (mut targets, mut total) = (0, 0.0f64);
    for (n, document) in documents.iter().enumerate() {
        document.check(n, vocabulary, capacity)?;
        if step.ids.len() + document.ids.len() > capacity as usize {
            steps.push(std::mem::take(&mut step));
        }
        let first = step.ids.len() as u32;
        step.ids.extend(&document.ids);
        step.positions.extend(0..document.ids.len() as u32);
        step.firsts.extend(document.ids.iter().map(|_| first));
        for (t, &target) in document.targets.iter().enumerate().filter(|(_, target)| **target < vocabulary) {
            step.out_rows.push(first + t as u32);
            step.targets.push(target);
            step.loss_weights.push(document.weight(t));
            targets += 1;
            total += f64::from(document.weight(t));
        }
    }
    if !step.ids.is_empty() {
        steps.push(step);
    }
    let share = if total > 0.0 { total.recip() } else { 0.0 };
    steps.iter_mut().flat_map(|step| &mut step.loss_weights).for_each(|w| *w = (f64::from(*w) * share) as f32);
    Ok(Packed { steps, targets })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(ids: &[u32], targets: &[u32]) -> Document {
        Document { ids: ids.to_vec(), targets: targets.to_vec(), weights: vec![] }
    }

    #[test]
    fn whole_documents_share_steps_and_one_mean() {
        let documents = [document(&[1, 2], &[2, NO_TARGET]), document(&[3], &[4]), document(&[5, 6, 7], &[99, 6, 7])];
        let Packed { steps, targets } = pack(&documents, 10, 4).expect("documents that fit");
        assert_eq!((steps.len(), targets), (2, 4));
        assert_eq!(steps[0].ids, [1, 2, 3]);
        assert_eq!(steps[0].positions, [0, 1, 0]);
        assert_eq!(steps[0].firsts, [0, 0, 2]);
        assert_eq!((&steps[0].out_rows[..], &steps[0].targets[..]), (&[0, 2][..], &[2, 4][..]));
        assert_eq!(steps[1].out_rows, [1, 2]);
        assert_eq!(steps[1].loss_weights, [0.25, 0.25]);
    }

    #[test]
    fn weights_are_part_of_the_mean() {
        let weighted = Document { weights: vec![3.0, 1.0], ..document(&[1, 2], &[2, 3]) };
        assert_eq!(pack(&[weighted], 10, 4).expect("fits").steps[0].loss_weights, [0.75, 0.25]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let refused = |documents: &[Document]| pack(documents, 10, 2).map(|_| ()).expect_err("refused").to_string();
        assert_eq!(
            refused(&[document(&[1], &[2]), document(&[1, 2, 3], &[2, 3, 4])]),
            "document 1 has 3 tokens, a step has room for 2; cut it, or make steps longer"
        );
        assert_eq!(refused(&[document(&[10], &[2])]), "document 0 has the id 10, but the vocabulary has 10 ids");
        assert_eq!(refused(&[document(&[1], &[])]), "document 0 has 1 ids, 0 targets and 0 weights");
    }
}
