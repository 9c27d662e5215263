//! When a run ends, by its log alone: so a run that goes on ends where one that was not stopped
//! does.

use crate::log::Record;

/// When a run ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The number of steps, if it is known.
    pub steps: Option<u64>,
    /// Validations without a better loss after which the run ends; 0 for none.
    pub patience: u32,
    /// Steps of an epoch, if the run ends where the loss of the whole data is flat.
    pub flat: Option<u64>,
    /// Steps in which the rate still rises.
    pub warmup: u64,
}

/// Why a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All steps are done.
    Steps,
    /// No better loss came after the validation behind this step.
    Patience { best: u64 },
    /// The loss of the whole data is flat.
    Flat,
}

/// Validations of a run, about.
const VALIDATIONS: u64 = 10;
/// Steps between validations of a run whose end is not known.
const VALIDATED: u64 = 100;
/// Epochs that are compared with all before them.
const RECENT: usize = 5;
/// The part of the loss of the first epoch that these epochs must gain. In `docs/training.md` are
/// the runs by which it was chosen.
const GAIN: f64 = 1e-4;
/// Steps in a row whose loss is far above that of the first step, after which a run is given up.
const RISEN: usize = 10;
/// How far above: so many times the first loss.
const RISE: f64 = 2.0;

impl Ending {
    /// Why a run with these records has ended, if it has.
    #[must_use]
    pub fn reached(&self, records: &[Record]) -> Option<Ended> {
        let done = records.last().map_or(0, |record| record.step);
        if self.steps.is_some_and(|steps| done >= steps) {
            return Some(Ended::Steps);
        }
        if self.flat.is_some_and(|epoch| is_flat(records, epoch, self.warmup)) {
            return Some(Ended::Flat);
        }
        if self.patience == 0 || records.last()?.validation.is_none() {
            return None;
        }
        let best = Self::best(records)?.step;
        let since = records.iter().filter(|record| record.step > best && record.validation.is_some()).count();
        (since >= self.patience as usize).then_some(Ended::Patience { best })
    }

    /// Whether the loss of the held-out examples is computed after this step: about ten times in a
    /// run, and after its last step.
    #[must_use]
    pub fn is_validated(&self, step: u64) -> bool {
        step.is_multiple_of(self.steps.map_or(VALIDATED, |steps| steps.div_ceil(VALIDATIONS)))
            || Some(step) == self.steps
    }

    /// The first step with the lowest loss of the held-out examples.
    #[must_use]
    pub fn best(records: &[Record]) -> Option<&Record> {
        let loss = |record: &Record| record.validation.filter(|loss| loss.is_finite()).unwrap_or(f64::INFINITY);
        let validated = records.iter().filter(|record| loss(record) < f64::INFINITY);
        validated.min_by(|a, b| loss(a).total_cmp(&loss(b)))
    }

    /// The first and the last loss, if the last steps are far above the first one: the run is given
    /// up.
    #[must_use]
    pub fn risen(records: &[Record]) -> Option<(f64, f64)> {
        let (first, last) = (records.first()?.loss, records.last()?.loss);
        let recent = &records[records.len().checked_sub(RISEN)?..];
        let is_above = |record: &Record| record.loss > (RISE * first).max(first + 1.0);
        recent.iter().all(is_above).then_some((first, last))
    }
}

/// Whether the last epochs gained next to nothing.
fn is_flat(records: &[Record], epoch: u64, warmup: u64) -> bool {
    let done = records.len() as u64;
    if epoch == 0 || !done.is_multiple_of(epoch) || done <= warmup {
        return false;
    }
    let mean = |records: &[Record]| records.iter().map(|record| record.loss).sum::<f64>() / records.len() as f64;
    let losses: Vec<f64> = records.chunks(epoch as usize).map(mean).collect();
    let Some(before) = losses.len().checked_sub(RECENT).filter(|before| *before > 0) else { return false };
    let least = |losses: &[f64]| losses.iter().copied().fold(f64::INFINITY, f64::min);
    least(&losses[..before]) - least(&losses[before..]) < GAIN * losses[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(losses: &[f64], validated: &[(u64, f64)]) -> Vec<Record> {
        let held = |step| validated.iter().find(|(at, _)| *at == step).map(|(_, loss)| *loss);
        let record =
            |(step, loss): (u64, &f64)| Record { step, loss: *loss, validation: held(step), ..Record::default() };
        (1..).zip(losses).map(record).collect()
    }

    #[test]
    fn patience_counts_validations_since_the_best_one() {
        let ending = Ending { steps: Some(90), patience: 2, ..Ending::default() };
        let losses = [1.0; 60];
        let held = [(10, 3.0), (20, 2.0), (30, 2.5), (40, 2.0), (50, 1.0)];
        let until = |steps: usize| ending.reached(&records(&losses[..steps], &held));
        assert_eq!((until(30), until(40)), (None, Some(Ended::Patience { best: 20 })));
        assert_eq!(until(41), None, "only a validation decides");
        assert_eq!(Ending { patience: 0, ..ending.clone() }.reached(&records(&losses[..40], &held)), None);
        assert_eq!(Ending::best(&records(&losses, &held)).map(|record| record.step), Some(50));
        assert_eq!(Ending { steps: Some(40), ..ending }.reached(&records(&losses[..40], &[])), Some(Ended::Steps));
    }

    #[test]
    fn about_ten_steps_of_a_run_are_validated_and_its_last_one() {
        let validated = |steps: Option<u64>, until: u64| {
            let ending = Ending { steps, ..Ending::default() };
            (1..=until).filter(|step| ending.is_validated(*step)).collect::<Vec<_>>()
        };
        assert_eq!(validated(Some(45), 45), [5, 10, 15, 20, 25, 30, 35, 40, 45]);
        assert_eq!(validated(Some(23), 23), [3, 6, 9, 12, 15, 18, 21, 23]);
        assert_eq!(validated(Some(2), 2), [1, 2]);
        assert_eq!(validated(None, 250), [100, 200]);
    }

    #[test]
    fn a_run_whose_epochs_gain_nothing_is_flat() {
        let ending = Ending { flat: Some(2), warmup: 4, ..Ending::default() };
        let falling: Vec<f64> = (0..40).map(|n| 8.0 * 0.9f64.powi(n)).collect();
        assert_eq!(ending.reached(&records(&falling, &[])), None);
        let flat: Vec<f64> = falling.iter().copied().chain(vec![falling[39]; 10]).collect();
        assert_eq!(
            ending.reached(&records(&flat, &[])),
            None,
            "the first of five flat epochs is better than all before"
        );
        let flat: Vec<f64> = flat.into_iter().chain([falling[39]; 2]).collect();
        assert_eq!(ending.reached(&records(&flat, &[])), Some(Ended::Flat));
        assert_eq!(ending.reached(&records(&flat[..51], &[])), None, "in the middle of an epoch");
        assert_eq!(Ending { flat: None, ..ending }.reached(&records(&flat, &[])), None);
    }

    #[test]
    fn a_loss_that_stays_far_above_the_first_one_has_risen() {
        let losses = |n: usize| [&[3.0][..], &vec![40.0; n]].concat();
        assert_eq!(Ending::risen(&records(&losses(9), &[])), None);
        assert_eq!(Ending::risen(&records(&losses(10), &[])), Some((3.0, 40.0)));
        assert_eq!(Ending::risen(&records(&[losses(10), vec![5.0]].concat(), &[])), None);
    }
}
