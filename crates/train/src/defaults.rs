//! The settings of a run that nobody chose: the rules by which `weft train` and other programs
//! find them. `docs/training.md` has the runs by which they were chosen.
//!
//! ```no_run
//! # use train::{Batches, Data, Lora, Trainer, defaults};
//! # fn run(model: &model::Model, data: Data) -> Result<(), train::Error> {
//! let (learnt, held) = match defaults::held_share(data.len()) {
//!     Some(share) => data.split(share, 0).map(|(learnt, held)| (learnt, Some(held)))?,
//!     None => (data, None),
//! };
//! let rows = defaults::rows(&learnt, held.as_ref(), defaults::BATCH);
//! let batches = Batches::new(learnt, defaults::BATCH, 0);
//! let (method, amount) = (Lora::new(defaults::RANK).into(), defaults::Amount::of(&batches, held.is_some()));
//! let course = defaults::Course::of(&defaults::Chosen::default(), &method, model.weights(), amount);
//! let gradients = course.options.gradients.clone().rows(rows);
//! let trainer = Trainer::new(model, method, &course.options.gradients(gradients))?;
//! # Ok(())
//! # }
//! ```

use crate::data::{Batches, Counts, Data};
use crate::ending::Ending;
use crate::method::Method;
use crate::options::TrainerOptions;
use crate::schedule::{Rate, Schedule};
use kernels::Weights;
use kernels::cpu_ref::AdamwSpec;
use std::ops::RangeInclusive;

/// Examples of a step.
pub const BATCH: u32 = 8;
/// The rank of new factors.
pub const RANK: u32 = 16;
/// The alpha of new factors.
pub const ALPHA: f32 = 32.0;
/// Tokens that are computed together, if batches have as many.
pub const ROWS: u32 = 1024;

/// Most tokens of an example, if the model's context is longer.
const LENGTH: u32 = 2048;

/// From this number of examples on, a share of them is held out: a twentieth, but no fewer and no
/// more than [`HELD`].
const HELD_FROM: u64 = 100;
const HELD: RangeInclusive<u64> = 10..=500;

/// How often examples are learnt, at least and at most: few examples as often as gives these steps.
const EPOCHS: u64 = 3;
const MOST_EPOCHS: u64 = 30;
const STEPS: u64 = 100;

/// Validations without a better loss after which a run ends.
const PATIENCE: u32 = 3;

/// The weight decay where examples are many, or held out.
const DECAY: f32 = 0.01;
/// The part of themselves that factors lose in a run over few examples, if no gradient holds them,
/// as a natural logarithm. Without it such a run takes more from the model than the examples need.
const LOST: f64 = 0.18;
/// A rate that is zero in every step decays nothing.
const LEAST: f64 = 1e-9;

/// Most tokens of an example, for a model of this context.
#[must_use]
pub fn length(context: u32) -> u32 {
    context.min(LENGTH)
}

/// The share of so many examples that is held out for validation; none of few examples.
#[must_use]
pub fn held_share(examples: u64) -> Option<f64> {
    (examples >= HELD_FROM).then(|| (examples / 20).clamp(*HELD.start(), *HELD.end()) as f64 / examples as f64)
}

/// Tokens that are computed together: enough for most batches of what is learnt, and for every
/// example of it and of `others`.
pub fn rows<'a>(learnt: &Data, others: impl IntoIterator<Item = &'a Data>, batch: u32) -> u32 {
    let Counts { tokens, documents, examples, longest, .. } = learnt.counts();
    let others = others.into_iter().map(|data| data.counts().longest).max().unwrap_or(0);
    let whole = tokens * u64::from(batch) / examples.max(1);
    let slack = whole / 4 + tokens / documents.max(1);
    u32::try_from((whole + slack).min(ROWS.into())).unwrap_or(u32::MAX).max(longest).max(others)
}

/// The most tokens that examples fill a step with, if it is known: without packing a step has one
/// document, else at most those of a batch.
pub fn most_rows<'a>(data: impl IntoIterator<Item = &'a Data>, batch: u32, packing: bool) -> Option<u32> {
    let most = data.into_iter().map(Data::counts).map(|counts| match (packing, counts.documents == counts.examples) {
        (false, _) => Some(counts.longest),
        (true, true) => Some(counts.longest.saturating_mul(batch)),
        // An example of several documents may have any number of tokens.
        (true, false) => None,
    });
    most.collect::<Option<Vec<u32>>>()?.into_iter().max()
}

/// What somebody chose of the course of a run. What is `None` gets its default.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Chosen {
    /// How often all examples are learnt. It has no effect beside `steps`.
    pub epochs: Option<u64>,
    /// The number of steps.
    pub steps: Option<u64>,
    /// The highest learning rate.
    pub rate: Option<f64>,
    pub schedule: Option<Schedule>,
    /// Steps in which the rate rises to its height.
    pub warmup: Option<u64>,
    /// The weight decay of AdamW.
    pub decay: Option<f32>,
    /// See [`Ending::patience`].
    pub patience: Option<u32>,
}

/// How much a run has to learn.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Examples that are learnt, if the number is known.
    pub examples: Option<u64>,
    /// Batches of an epoch, if the number is known.
    pub batches: Option<u64>,
    /// Whether other examples are held out for validation.
    pub holds_out: bool,
}

impl Amount {
    /// The amount of these batches.
    #[must_use]
    pub fn of(batches: &Batches, holds_out: bool) -> Self {
        Self { examples: Some(batches.data().len()), batches: Some(batches.per_epoch()), holds_out }
    }
}

/// How fast a run learns, and when it ends.
#[derive(Clone, Debug)]
pub struct Course {
    /// The default options, with the rate and the decay of the run.
    pub options: TrainerOptions,
    pub ending: Ending,
}

impl Course {
    /// The course of a run over a model with these weights.
    ///
    /// * Examples are learnt 3 times; few ones up to 30 times, for 100 steps.
    /// * The rate depends on the size of the model. It rises in 3% of the steps, of few steps in
    ///   10%, and then falls as a cosine. Where the number of steps is not known, it is constant
    ///   from the start.
    /// * The weight decay is 0.01; for factors and few examples, of which none is held out, as much
    ///   as keeps the rest of the model.
    /// * The run ends where the loss of held-out examples gets no better 3 times in a row. Without
    ///   such examples it ends where the loss of all examples is flat. Neither happens where epochs
    ///   or steps are chosen, and patience is not.
    #[must_use]
    pub fn of(chosen: &Chosen, method: &Method, weights: &Weights, amount: Amount) -> Self {
        let Amount { examples, batches, holds_out } = amount;
        let epochs = |batches: u64| chosen.epochs.unwrap_or_else(|| STEPS.div_ceil(batches).clamp(EPOCHS, MOST_EPOCHS));
        let steps = chosen.steps.or_else(|| batches.map(|batches| batches * epochs(batches)));
        let usual = if steps.is_some() { Schedule::Cosine } else { Schedule::Constant };
        let warmup = || steps.map_or(0, |steps| (steps * 3 / 100).max(steps.min(100) / 10));
        let rate = Rate {
            peak: chosen.rate.unwrap_or_else(|| peak(method, weights)),
            schedule: chosen.schedule.unwrap_or(usual),
            warmup: chosen.warmup.unwrap_or_else(warmup),
            steps: steps.unwrap_or(u64::MAX),
        };
        let is_few =
            matches!(method, Method::Lora(_)) && !holds_out && examples.is_some_and(|examples| examples < HELD_FROM);
        let decay = chosen.decay.unwrap_or_else(|| if is_few { decay_of_few(&rate) } else { DECAY });
        let options = TrainerOptions::default().rate(rate).validation(holds_out);
        let adamw = AdamwSpec { decay: f64::from(decay), ..options.adamw };
        let is_free = chosen.epochs.is_none() && chosen.steps.is_none();
        let patience = chosen.patience.unwrap_or(if is_free { PATIENCE } else { 0 });
        let flat = if holds_out || patience == 0 { None } else { batches };
        Self { options: options.adamw(adamw), ending: Ending { steps, patience, flat, warmup: rate.warmup } }
    }
}

/// The decay with which factors lose [`LOST`] in all steps, to two digits.
fn decay_of_few(rate: &Rate) -> f32 {
    let sum: f64 = (0..rate.steps.min(1 << 20)).map(|step| rate.at(step)).sum();
    let decay = (LOST / sum.max(LEAST)).min(1e6);
    format!("{decay:.1e}").parse().unwrap_or(DECAY)
}

/// The usual rate: small models and factors take larger ones. 2e-4 for factors and 2e-5 for weights
/// are what most published recipes have for models of a billion weights and more. The rate of
/// factors in models as small as the default model is the one with which it learns twenty facts and
/// forgets little.
fn peak(method: &Method, weights: &Weights) -> f64 {
    let is_full = matches!(method, Method::Full(_));
    let elements: f64 = weights.iter().map(|(_, weight)| f64::from(weight.rows) * f64::from(weight.cols)).sum();
    let larger = match elements {
        0.0..3e7 if is_full => 20.0,
        0.0..3e7 => 10.0,
        3e7..3e8 => 5.0,
        _ => 1.0,
    };
    larger * if is_full { 2e-5 } else { 2e-4 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{Full, Lora};
    use kernels::Executor;
    use model::{Checked, ModelFile};

    fn checked() -> Checked {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/assets/default.gguf");
        ModelFile::open(path).expect("the default model").check(&Executor::Cpu).expect("a model")
    }

    fn amount(examples: u64, batches: u64, holds_out: bool) -> Amount {
        Amount { examples: Some(examples), batches: Some(batches), holds_out }
    }

    #[test]
    fn twenty_facts_get_the_course_of_the_table() {
        let (checked, lora) = (checked(), Lora::new(RANK).into());
        let course = Course::of(&Chosen::default(), &lora, checked.weights(), amount(20, 3, false));
        assert_eq!(course.options.rate, Rate { peak: 2e-3, schedule: Schedule::Cosine, warmup: 9, steps: 90 });
        assert_eq!(course.options.adamw.decay, 2.0);
        assert_eq!(course.ending, Ending { steps: Some(90), patience: 3, flat: Some(3), warmup: 9 });
        let full = Course::of(&Chosen::default(), &Full::default().into(), checked.weights(), amount(20, 3, false));
        assert_eq!((full.options.rate.peak, full.options.adamw.decay), (4e-4, f64::from(DECAY)));
    }

    #[test]
    fn many_examples_are_learnt_three_times_and_judged_by_a_share() {
        let (checked, lora) = (checked(), Lora::new(RANK).into());
        let course = Course::of(&Chosen::default(), &lora, checked.weights(), amount(950, 119, true));
        assert_eq!(course.options.rate, Rate { peak: 2e-3, schedule: Schedule::Cosine, warmup: 10, steps: 357 });
        assert!(course.options.validation && course.options.adamw.decay == f64::from(DECAY));
        assert_eq!(course.ending, Ending { steps: Some(357), patience: 3, flat: None, warmup: 10 });
        let unknown = Amount::default();
        let course = Course::of(&Chosen::default(), &lora, checked.weights(), unknown);
        assert_eq!(course.options.rate, Rate { peak: 2e-3, ..Rate::constant(0.0) });
        assert_eq!(course.ending, Ending { steps: None, patience: 3, flat: None, warmup: 0 });
    }

    #[test]
    fn what_is_chosen_is_taken_and_the_rest_follows_it() {
        let (checked, lora) = (checked(), Lora::new(RANK).into());
        let of = |chosen: Chosen| Course::of(&chosen, &lora, checked.weights(), amount(20, 3, false));
        let chosen = Chosen { steps: Some(40), rate: Some(1e-3), ..Chosen::default() };
        let course = of(chosen);
        assert_eq!(course.options.rate, Rate { peak: 1e-3, schedule: Schedule::Cosine, warmup: 4, steps: 40 });
        assert_eq!(course.ending, Ending { steps: Some(40), patience: 0, flat: None, warmup: 4 });
        let slower = of(Chosen { rate: Some(5e-4), ..chosen }).options.adamw.decay / course.options.adamw.decay;
        assert!((1.9..2.1).contains(&slower), "half the rate decays twice as fast, not {slower} times");
        let all =
            Chosen { schedule: Some(Schedule::Linear), warmup: Some(1), decay: Some(0.5), patience: Some(7), ..chosen };
        let course = of(all);
        assert_eq!(course.options.rate, Rate { peak: 1e-3, schedule: Schedule::Linear, warmup: 1, steps: 40 });
        assert_eq!((course.options.adamw.decay, course.ending.patience), (0.5, 7));
        assert_eq!(of(Chosen { epochs: Some(2), ..Chosen::default() }).ending.steps, Some(6));
    }

    #[test]
    fn a_twentieth_of_a_hundred_and_more_is_held_out() {
        let held = |examples: u64| held_share(examples).map(|share| (share * examples as f64).round() as u64);
        assert_eq!(
            [99, 100, 200, 400, 10_000, 1_000_000].map(held),
            [None, Some(10), Some(10), Some(20), Some(500), Some(500)]
        );
    }
}
