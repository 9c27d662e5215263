//! The options of a run as JavaScript gives them, with the defaults of `weft train`.

use crate::error::Failure;
use kernels::cpu_ref::AdamwSpec;
use model::FactorPair;
use serde::Deserialize;
use serde_json::{Value, json};
use train::defaults::{self, Chosen, Course};
use train::{DataOptions, Learn, Longer, Lora, Normalize, Schedule, Targets, TrainerOptions};
use wasm_bindgen::JsValue;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    method: Factors,
    batch: Option<u32>,
    pub rows: Option<u32>,
    length: Option<u32>,
    epochs: Option<u64>,
    steps: Option<u64>,
    rate: Option<f64>,
    schedule: Option<String>,
    warmup: Option<u64>,
    decay: Option<f32>,
    betas: Option<[f64; 2]>,
    eps: Option<f64>,
    clip: Option<f64>,
    mean: Option<String>,
    longer: Option<String>,
    patience: Option<u32>,
    shuffle: Option<bool>,
    hold_out: Option<bool>,
    seed: Option<u64>,
    learn: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Factors {
    rank: Option<u32>,
    alpha: Option<f32>,
    targets: Option<Names>,
    dropout: Option<f32>,
    rslora: bool,
}

/// One text with commas, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    Text(String),
    List(Vec<String>),
}

/// The ranks that factors may have.
const RANKS: std::ops::RangeInclusive<u32> = 1..=4096;

fn wrong(message: String) -> Failure {
    Failure::new("bad-options", message)
}

/// A copy of the options without what is no JSON.
pub fn without_data(options: &JsValue) -> JsValue {
    let copy = js_sys::Object::assign(&js_sys::Object::new(), &js_sys::Object::from(options.clone()));
    for key in ["data", "validation", "init"] {
        let _ = js_sys::Reflect::delete_property(&copy, &JsValue::from_str(key));
    }
    copy.into()
}

impl Options {
    pub fn batch(&self) -> u32 {
        self.batch.unwrap_or(defaults::BATCH).max(1)
    }

    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Whether a share of many examples is held out by itself.
    pub fn holds_out(&self) -> bool {
        self.hold_out.unwrap_or(true)
    }

    pub fn shuffle(&self) -> bool {
        self.shuffle.unwrap_or(true)
    }

    /// How lines become documents, for a model of this context.
    pub fn data(&self, context: u32) -> Result<DataOptions, Failure> {
        let learn = match self.learn.as_deref() {
            None | Some("completions") => Learn::Completions,
            Some("all") => Learn::All,
            Some(other) => return Err(Failure::unknown("learn", other, &["completions", "all"])),
        };
        let longer = match self.longer.as_deref() {
            None | Some("cut") => Longer::Cut,
            Some("drop") => Longer::Drop,
            Some(other) => return Err(Failure::unknown("longer", other, &["cut", "drop"])),
        };
        let length = self.length.unwrap_or_else(|| defaults::length(context));
        if length == 0 || length > context {
            return Err(wrong(format!("length: {length} is not between 1 and {context}, the context of the model")));
        }
        Ok(DataOptions::default().length(length).longer(longer).learn(learn))
    }

    pub fn lora(&self) -> Result<Lora, Failure> {
        let Factors { rank, alpha, targets, dropout, rslora } = &self.method;
        let rank = rank.unwrap_or(defaults::RANK);
        if !RANKS.contains(&rank) {
            return Err(wrong(format!("method.rank: {rank} is not between {} and {}", RANKS.start(), RANKS.end())));
        }
        let dropout = dropout.unwrap_or(0.0);
        if !(0.0..1.0).contains(&dropout) {
            return Err(wrong(format!("method.dropout: {dropout} is not from 0 to below 1")));
        }
        let targets: Targets = match targets {
            None => Targets::default(),
            Some(Names::Text(text)) => text.parse().map_err(|reason| wrong(format!("method.targets: {reason}")))?,
            Some(Names::List(list)) => {
                list.join(",").parse().map_err(|reason| wrong(format!("method.targets: {reason}")))?
            }
        };
        let lora = Lora::new(rank).targets(targets).rslora(*rslora).dropout(dropout).seed(self.seed());
        Ok(lora.alpha(alpha.unwrap_or(defaults::ALPHA)))
    }

    /// These factors in place of new ones.
    pub fn lora_from(&self, factors: Vec<FactorPair>) -> Result<Lora, Failure> {
        let Factors { rank, alpha, targets, rslora, .. } = &self.method;
        let own =
            [("rank", rank.is_some()), ("alpha", alpha.is_some()), ("targets", targets.is_some()), ("rslora", *rslora)];
        if let Some((name, _)) = own.iter().find(|(_, given)| *given) {
            return Err(wrong(format!("method.{name}: the adapter of method.init has its own; leave one of them out")));
        }
        Ok(self.lora()?.init(factors))
    }

    /// What was chosen of the course of the run.
    pub fn course(&self) -> Result<Chosen, Failure> {
        let schedule = self.schedule.as_deref().map(str::parse::<Schedule>).transpose();
        let schedule = schedule.map_err(|reason| wrong(format!("schedule: {reason}")))?;
        if let Some(rate) = self.rate.filter(|rate| !(rate.is_finite() && *rate >= 0.0)) {
            return Err(wrong(format!("rate: {rate} is not a finite number of at least 0")));
        }
        Ok(Chosen {
            epochs: self.epochs,
            steps: self.steps,
            rate: self.rate,
            schedule,
            warmup: self.warmup,
            decay: self.decay,
            patience: self.patience,
        })
    }

    /// The options of a course with what was chosen of the optimizer.
    pub fn optimizer(&self, options: TrainerOptions) -> Result<TrainerOptions, Failure> {
        let [beta1, beta2] = self.betas.unwrap_or([options.adamw.beta1, options.adamw.beta2]);
        if let Some(beta) = [beta1, beta2].into_iter().find(|beta| !(0.0..1.0).contains(beta)) {
            return Err(wrong(format!("betas: {beta} is not from 0 to below 1")));
        }
        let eps = self.eps.unwrap_or(options.adamw.eps);
        if !(eps > 0.0 && eps.is_finite()) {
            return Err(wrong(format!("eps: {eps} is not a finite number above 0")));
        }
        let clip = match self.clip {
            None => options.clip,
            Some(0.0) => None,
            Some(clip) if clip > 0.0 && clip.is_finite() => Some(clip),
            Some(clip) => return Err(wrong(format!("clip: {clip} is not a finite number of at least 0"))),
        };
        let normalize = match self.mean.as_deref() {
            None | Some("tokens") => Normalize::Tokens,
            Some("examples") => Normalize::Sequences,
            Some(other) => return Err(Failure::unknown("mean", other, &["tokens", "examples"])),
        };
        let adamw = AdamwSpec { beta1, beta2, eps, ..options.adamw };
        let gradients = options.gradients.clone().normalize(normalize);
        Ok(options.gradients(gradients).adamw(adamw).clip(clip).seed(self.seed()))
    }

    /// All options in force.
    pub fn in_force(
        &self,
        lora: &Lora,
        options: &TrainerOptions,
        course: &Course,
        rows: u32,
        reading: &DataOptions,
    ) -> Value {
        let Lora { rank, alpha, targets, dropout, rslora, init, .. } = lora;
        let method = match init {
            // The ranks and the scales are those of the adapter.
            Some(_) => json!({ "dropout": dropout }),
            None => json!({
                "rank": rank, "alpha": alpha, "targets": targets.to_string(), "dropout": dropout, "rslora": rslora,
            }),
        };
        json!({
            "method": method,
            "batch": self.batch(),
            "rows": rows,
            "length": reading.length,
            "longer": if reading.longer == Longer::Drop { "drop" } else { "cut" },
            "learn": if reading.learn == Learn::All { "all" } else { "completions" },
            "holdOut": self.holds_out(),
            "rate": options.rate.peak,
            "schedule": options.rate.schedule.to_string(),
            "warmup": options.rate.warmup,
            "steps": course.ending.steps,
            "patience": course.ending.patience,
            "decay": options.adamw.decay,
            "betas": [options.adamw.beta1, options.adamw.beta2],
            "eps": options.adamw.eps,
            "clip": options.clip.unwrap_or(0.0),
            "mean": self.mean.as_deref().unwrap_or("tokens"),
            "shuffle": self.shuffle(),
            "seed": self.seed(),
        })
    }
}
