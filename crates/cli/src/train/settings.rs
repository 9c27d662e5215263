//! From the flags to the options of a trainer, with defaults that depend on the model and the data.

use super::args::{Args, Betas, Mean};
use super::examples::Examples;
use anyhow::Result;
use kernels::cpu_ref::AdamwSpec;
use model::Checked;
use train::defaults::{Chosen, Course};
use train::{Ending, Facts, Full, Method, Normalize, TrainerOptions};

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
        let chosen = Chosen {
            epochs: args.epochs,
            steps: args.number,
            rate: args.lr,
            schedule: args.schedule,
            warmup: args.warmup,
            decay: args.decay,
            patience: args.patience,
        };
        let Course { options, ending } = Course::of(&chosen, &method, checked.weights(), examples.amount());
        let Betas([beta1, beta2]) = args.betas;
        let adamw = AdamwSpec { beta1, beta2, eps: args.eps, ..options.adamw };
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
        let options = options.gradients(gradients).adamw(adamw).clip(clip).seed(args.seed);
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
