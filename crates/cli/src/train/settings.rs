//! From the flags to the options of a trainer, with defaults that depend on the model and the data.

use super::args::{Args, Betas, Mean};
use super::ending::Ending;
use super::examples::{Examples, HELD_FROM};
use anyhow::Result;
use kernels::Weights;
use model::Checked;
use train::{Facts, Full, Method, Normalize, Rate, Schedule, TrainerOptions};

/// How a run trains.
pub struct Settings {
    pub method: Method,
    pub options: TrainerOptions,
    /// When the run ends.
    pub ending: Ending,
    /// What must be the same when the run goes on, besides what the trainer knows itself.
    pub facts: Facts,
}

impl Settings {
    /// The settings for a model and for these examples.
    pub fn new(args: &Args, checked: &Checked, examples: &Examples) -> Result<Self> {
        let method: Method = match (args.full, args.from_config) {
            (true, true) => Full::default().fresh(args.seed).into(),
            (true, false) => Full::default().into(),
            (false, _) => args.factors.lora(checked, args.seed)?.dropout(args.dropout).into(),
        };
        let epochs = |batches: u64| args.epochs.unwrap_or_else(|| STEPS.div_ceil(batches).clamp(EPOCHS, MOST_EPOCHS));
        let steps = args.number.or_else(|| examples.batches().map(|batches| batches * epochs(batches)));
        let usual = if steps.is_some() { Schedule::Cosine } else { Schedule::Constant };
        let rate = Rate {
            peak: args.lr.unwrap_or_else(|| usual_rate(args, checked.weights())),
            schedule: args.schedule.unwrap_or(usual),
            warmup: args.warmup.unwrap_or_else(|| steps.map_or(0, |steps| (steps * 3 / 100).max(steps.min(100) / 10))),
            steps: steps.unwrap_or(u64::MAX),
        };
        let Betas([beta1, beta2]) = args.betas;
        let is_few = !args.full && !examples.holds_out() && examples.len().is_some_and(|len| len < HELD_FROM);
        let decay = args.decay.unwrap_or_else(|| if is_few { decay_of_few(&rate) } else { DECAY });
        let adamw = kernels::cpu_ref::AdamwSpec { beta1, beta2, eps: args.eps, decay: f64::from(decay) };
        let normalize = match args.mean {
            Mean::Tokens => Normalize::Tokens,
            Mean::Examples => Normalize::Sequences,
        };
        let rows = args.steps.micro.unwrap_or_else(|| examples.rows(args.batch));
        let gradients = args
            .steps
            .options(rows)
            .most_rows(examples.most_rows(args.batch, !args.no_pack))
            .captures(args.steps.captures())
            .trace(args.trace)
            .normalize(normalize)
            .packing(!args.no_pack);
        let clip = (args.clip > 0.0).then_some(f64::from(args.clip));
        let options = TrainerOptions::default().gradients(gradients).rate(rate).adamw(adamw).clip(clip).seed(args.seed);
        let options = options.validation(examples.holds_out());
        let is_free = args.epochs.is_none() && args.number.is_none();
        let patience = args.patience.unwrap_or(if is_free { PATIENCE } else { 0 });
        let flat = if examples.holds_out() || patience == 0 { None } else { examples.batches() };
        let ending = Ending { steps, patience, flat, warmup: rate.warmup };
        Ok(Self { method, options, ending, facts: examples.facts() })
    }

    /// What a warmup that is longer than the run makes of the rate.
    pub fn warmup_note(&self) -> Option<String> {
        let (steps, warmup) = (self.ending.steps?, self.options.rate.warmup);
        let reached = self.options.rate.at(steps - 1);
        (warmup > steps).then(|| {
            format!(
                "--warmup {warmup} is more than the {steps} steps of the run: the rate ends at {reached:.2e}, and does not reach its height"
            )
        })
    }

    /// The weight decay, as `--decay` takes it.
    pub fn decay(&self) -> f32 {
        self.options.adamw.decay as f32
    }

    /// The settings in a few words, for people.
    pub fn lines(&self, args: &Args) -> Vec<[String; 2]> {
        let TrainerOptions { rate, .. } = &self.options;
        let what = match &self.method {
            Method::Lora(lora) if lora.init.is_some() => "the factors of the given adapter".to_string(),
            Method::Lora(lora) => {
                format!("new factors of rank {}, alpha {}, on {}", lora.rank, lora.alpha, lora.targets)
            }
            Method::Full(Full { fresh: None, .. }) => "all weights".to_string(),
            Method::Full(_) => "all weights, from random ones".to_string(),
        };
        let Ending { steps, patience, flat, .. } = &self.ending;
        let earlier = match (flat, patience) {
            (Some(_), _) => ", fewer if the loss is flat before",
            (None, 1..) if self.options.validation => ", fewer if the validation gets no better",
            _ => "",
        };
        let steps = steps.map_or_else(
            || "until stdin ends".to_string(),
            |steps| format!("{steps} of {} examples{earlier}", args.batch),
        );
        let warmup = match rate.warmup {
            0 => String::new(),
            1 => " after 1 step of warmup".to_string(),
            steps => format!(" after {steps} steps of warmup"),
        };
        vec![
            ["trained".to_string(), what],
            ["steps".to_string(), steps],
            ["rate".to_string(), format!("{:e}, {}{warmup}; decay {}", rate.peak, rate.schedule, self.decay())],
        ]
    }
}

/// How often examples are learnt, at least and at most: few examples as often as gives these steps.
const EPOCHS: u64 = 3;
const MOST_EPOCHS: u64 = 30;
const STEPS: u64 = 100;

/// The weight decay where examples are many, or held out.
const DECAY: f32 = 0.01;
/// The part of themselves that factors lose in a run over few examples, if no gradient holds them,
/// as a natural logarithm. Without it such a run takes more from the model than the examples need
/// (docs/training.md).
const LOST: f64 = 0.18;
/// A rate that is zero in every step decays nothing.
const LEAST: f64 = 1e-9;

/// The decay with which factors lose [`LOST`] in all steps, to two digits.
fn decay_of_few(rate: &Rate) -> f32 {
    let sum: f64 = (0..rate.steps.min(1 << 20)).map(|step| rate.at(step)).sum();
    let decay = (LOST / sum.max(LEAST)).min(1e6);
    format!("{decay:.1e}").parse().unwrap_or(DECAY)
}

/// Validations without a better loss after which a run ends.
const PATIENCE: u32 = 3;

/// The usual rate: small models and factors take larger ones. 2e-4 for factors and 2e-5 for weights
/// are what most published recipes have for models of a billion weights and more. The rate of
/// factors in models as small as the default model is the one with which it learns twenty facts and
/// forgets little (docs/training.md).
fn usual_rate(args: &Args, weights: &Weights) -> f64 {
    let elements: f64 = weights.iter().map(|(_, weight)| f64::from(weight.rows) * f64::from(weight.cols)).sum();
    let larger = match elements {
        0.0..3e7 if args.full => 20.0,
        0.0..3e7 => 10.0,
        3e7..3e8 => 5.0,
        _ => 1.0,
    };
    larger * if args.full { 2e-5 } else { 2e-4 }
}
