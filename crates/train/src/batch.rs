//! Examples as token ids, and their packing into steps.

use crate::error::Error;
use crate::options::{GradientOptions, Normalize};
use kernels::StepInput;

/// A target that asks for no loss.
pub const NO_TARGET: u32 = u32::MAX;

/// An example, or a part of one. No document attends to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    pub ids: Vec<u32>,
    /// The id that should follow each of `ids`. An id outside the vocabulary, such as
    /// [`NO_TARGET`], asks for no loss.
    pub targets: Vec<u32>,
    /// The factor on the loss of each target; empty for 1.
    pub weights: Vec<f32>,
    /// Whether it is of the same example as the document before it: a conversation has several
    /// documents if its template shows earlier turns otherwise later on.
    pub continues: bool,
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

    /// The rows with a loss, and the target of each.
    pub(crate) fn learnt(&self, vocabulary: u32) -> impl Iterator<Item = (usize, u32)> {
        self.targets.iter().copied().enumerate().filter(move |(_, target)| *target < vocabulary)
    }

    /// The factor on the loss of a row.
    pub(crate) fn weight(&self, t: usize) -> f32 {
        self.weights.get(t).copied().unwrap_or(1.0)
    }
}

/// The inputs of the steps for a batch.
pub(crate) struct Packed {
    pub steps: Vec<StepInput>,
    /// Number of targets with a loss.
    pub targets: u64,
    /// What the sum of the losses is divided by: the weights of all targets, or the number of
    /// examples.
    pub weight: f64,
}

/// Puts whole documents into steps of up to [`GradientOptions::rows`] rows, in order. The weights
/// of the losses of all steps make the mean that [`GradientOptions::normalize`] says.
pub(crate) fn pack(documents: &[Document], vocabulary: u32, options: &GradientOptions) -> Result<Packed, Error> {
    let (mut steps, mut step, mut targets) = (vec![], StepInput::default(), 0);
    let (shares, weight) = shares(documents, vocabulary, options.normalize);
    for ((n, document), share) in documents.iter().enumerate().zip(shares) {
        document.check(n, vocabulary, options.capacity())?;
        let full = !options.packing || step.ids.len() + document.ids.len() > options.capacity() as usize;
        if full && !step.ids.is_empty() {
            steps.push(std::mem::take(&mut step));
        }
        let first = step.ids.len() as u32;
        step.ids.extend(&document.ids);
        step.positions.extend(0..document.ids.len() as u32);
        step.firsts.extend(document.ids.iter().map(|_| first));
        for (t, target) in document.learnt(vocabulary) {
            step.out_rows.push(first + t as u32);
            step.targets.push(target);
            step.loss_weights.push((f64::from(document.weight(t)) * share) as f32);
            targets += 1;
        }
    }
    if !step.ids.is_empty() {
        steps.push(step);
    }
    Ok(Packed { steps, targets, weight })
}

/// The factor on the weights of each document's targets, and the divisor of the mean.
fn shares(documents: &[Document], vocabulary: u32, normalize: Normalize) -> (Vec<f64>, f64) {
    let share = |weights: f64| if weights > 0.0 { weights.recip() } else { 0.0 };
    let of = |document: &Document| document.learnt(vocabulary).map(|(t, _)| f64::from(document.weight(t))).sum::<f64>();
    match normalize {
        Normalize::Tokens => {
            let all = documents.iter().map(of).sum();
            (vec![share(all); documents.len()], all)
        }
        Normalize::Sequences => {
            let examples: Vec<(f64, usize)> = documents
                .chunk_by(|_, next| next.continues)
                .map(|parts| (parts.iter().map(of).sum(), parts.len()))
                .collect();
            let learning = examples.iter().filter(|(weights, _)| *weights > 0.0).count() as f64;
            let shares = examples.iter().flat_map(|(weights, parts)| vec![share(weights * learning); *parts]);
            (shares.collect(), learning)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn document(ids: &[u32], targets: &[u32]) -> Document {
        Document { ids: ids.to_vec(), targets: targets.to_vec(), ..Document::default() }
    }

    fn rows(rows: u32) -> GradientOptions {
        GradientOptions::default().rows(rows)
    }

    #[test]
    fn whole_documents_share_steps_and_one_mean() {
        let documents = [document(&[1, 2], &[2, NO_TARGET]), document(&[3], &[4]), document(&[5, 6, 7], &[99, 6, 7])];
        let Packed { steps, targets, weight } = pack(&documents, 10, &rows(4)).expect("documents that fit");
        assert_eq!((steps.len(), targets, weight), (2, 4, 4.0));
        assert_eq!(steps[0].ids, [1, 2, 3]);
        assert_eq!(steps[0].positions, [0, 1, 0]);
        assert_eq!(steps[0].firsts, [0, 0, 2]);
        assert_eq!((&steps[0].out_rows[..], &steps[0].targets[..]), (&[0, 2][..], &[2, 4][..]));
        assert_eq!(steps[1].out_rows, [1, 2]);
        assert_eq!(steps[1].loss_weights, [0.25, 0.25]);
    }

    #[test]
    fn without_packing_a_step_has_one_document() {
        let documents = [document(&[1], &[2]), document(&[3], &[4])];
        let packed = pack(&documents, 10, &rows(4).packing(false)).expect("documents that fit");
        assert_eq!(packed.steps.iter().map(|step| &step.ids[..]).collect::<Vec<_>>(), [[1], [3]]);
        assert_eq!(packed.steps[1].loss_weights, [0.5]);
    }

    #[test]
    fn weights_are_part_of_the_mean() {
        let weighted = Document { weights: vec![3.0, 1.0], ..document(&[1, 2], &[2, 3]) };
        assert_eq!(pack(&[weighted], 10, &rows(4)).expect("fits").steps[0].loss_weights, [0.75, 0.25]);
    }

    #[test]
    fn a_mean_of_means_leaves_out_documents_without_targets() {
        let weighted = Document { weights: vec![3.0, 1.0], ..document(&[1, 2], &[2, 3]) };
        let documents = [weighted, document(&[1], &[NO_TARGET]), document(&[4], &[5])];
        let packed = pack(&documents, 10, &rows(4).normalize(Normalize::Sequences)).expect("fits");
        assert_eq!(packed.steps[0].loss_weights, [0.375, 0.125, 0.5]);
        assert_eq!(packed.weight, 2.0);
    }

    #[test]
    fn documents_of_one_example_share_its_weight() {
        let part = |ids: &[u32], targets: &[u32]| Document { continues: true, ..document(ids, targets) };
        let documents =
            [document(&[1, 2], &[2, 3]), part(&[1, 2], &[NO_TARGET, 3]), part(&[4], &[5]), document(&[6], &[7])];
        let packed = pack(&documents, 10, &rows(9).normalize(Normalize::Sequences)).expect("fits");
        assert_eq!((&packed.steps[0].loss_weights[..], packed.weight), (&[0.125, 0.125, 0.125, 0.125, 0.5][..], 2.0));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let refused =
            |documents: &[Document]| pack(documents, 10, &rows(2)).map(|_| ()).expect_err("refused").to_string();
        assert_eq!(
            refused(&[document(&[1], &[2]), document(&[1, 2, 3], &[2, 3, 4])]),
            "document 1 has 3 tokens, a step has room for 2; cut it, or make steps longer"
        );
        assert_eq!(refused(&[document(&[10], &[2])]), "document 0 has the id 10, but the vocabulary has 10 ids");
        assert_eq!(refused(&[document(&[1], &[])]), "document 0 has 1 ids, 0 targets and 0 weights");
    }

    /// A document of a vocabulary of 10, with targets outside it and weights of 0.
    fn any_document() -> impl Strategy<Value = Document> {
        vec((0..10u32, prop_oneof![0..10u32, Just(NO_TARGET), Just(10)], 0..3u8), 1..9).prop_map(|rows| Document {
            continues: rows[0].0 % 3 == 0,
            ids: rows.iter().map(|row| row.0).collect(),
            targets: rows.iter().map(|row| row.1).collect(),
            weights: if rows[0].2 == 2 { vec![] } else { rows.iter().map(|row| f32::from(row.2)).collect() },
        })
    }

    proptest! {
        #[test]
        fn steps_have_every_row_and_every_loss_once_and_in_order(
            documents in vec(any_document(), 0..12),
            room in 8..30u32,
            packing: bool,
            sequences: bool,
        ) {
            let normalize = if sequences { Normalize::Sequences } else { Normalize::Tokens };
            let packed = pack(&documents, 10, &rows(room).packing(packing).normalize(normalize)).expect("documents that fit");
            let (mut found, mut losses, mut mean) = (vec![], vec![], 0.0);
            for step in &packed.steps {
                prop_assert!(!step.ids.is_empty() && step.ids.len() <= room as usize);
                prop_assert!(packing || step.firsts.iter().all(|first| *first == 0));
                for (t, (&first, &position)) in step.firsts.iter().zip(&step.positions).enumerate() {
                    // A row sees its own document only.
                    prop_assert_eq!((first + position) as usize, t);
                }
                found.extend(step.ids.iter().copied().zip(step.positions.iter().copied()));
                losses.extend(step.out_rows.iter().zip(&step.targets).map(|(&row, &target)| (step.ids[row as usize], target)));
                mean += step.loss_weights.iter().map(|weight| f64::from(*weight)).sum::<f64>();
            }
            let rows = documents.iter().flat_map(|document| document.ids.iter().copied().zip(0..));
            prop_assert_eq!(found, rows.collect::<Vec<_>>());
            let of = |document: &Document| document.learnt(10).map(|(t, target)| (document.ids[t], target)).collect::<Vec<_>>();
            prop_assert_eq!(&losses, &documents.iter().flat_map(of).collect::<Vec<_>>());
            prop_assert_eq!(packed.targets, losses.len() as u64);
            let learns = documents.iter().any(|document| document.learnt(10).any(|(t, _)| document.weight(t) > 0.0));
            prop_assert!((mean - f64::from(u8::from(learns))).abs() < 1e-6, "{}", mean);
        }
    }
}
