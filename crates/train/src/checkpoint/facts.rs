//! What a run depends on besides its data, in the words of its options.

use super::Facts;
use crate::error::Error;
use crate::hex::hex;
use crate::method::{Full, Lora, Method};
use crate::options::Normalize;
use crate::parameters::Trained;
use crate::trainer::Trainer;
use kernels::Precision;
use model::Base;
use sha2::{Digest, Sha256};

/// The fact that has the digest of samples of the model, in checkpoints of version 1.
pub(super) const SAMPLED: &str = "base";

impl Trainer {
    /// The model, the trained tensors, the optimizer.
    pub(super) fn facts(&self) -> Result<Facts, Error> {
        let mut facts = Facts::new();
        let mut fact = |name: &str, value: String| drop(facts.insert(name.to_string(), value));
        let file =
            || self.model.file().path().map_or_else(|| "the model".to_string(), |path| path.display().to_string());
        let digests = self.digest.get().map_err(|reason| Error::Read { file: file(), reason: reason.clone() })?;
        fact("model", digests.metadata.clone());
        fact("weights", digests.weights.clone());
        fact("base", base(self.model.base()).to_string());
        match &self.method {
            Method::Lora(lora) => lora_facts(lora, &mut fact),
            Method::Full(Full { fresh }) => {
                fact("method", "all weights".to_string());
                fresh.iter().for_each(|seed| fact("from random weights of the seed", seed.to_string()));
            }
        }
        fact("trained", trained(&self.trained));
        self.step_facts(&mut fact);
        Ok(facts)
    }

    /// What decides about steps.
    fn step_facts(&self, fact: &mut dyn FnMut(&str, String)) {
        let options = &self.options;
        let (gradients, rate, adamw) = (&options.gradients, &options.rate, &options.adamw);
        fact("lr", rate.peak.to_string());
        fact("schedule", rate.schedule.to_string());
        fact("warmup", rate.warmup.to_string());
        fact("steps", if rate.steps == u64::MAX { "not known before".to_string() } else { rate.steps.to_string() });
        fact("betas", format!("{},{}", adamw.beta1, adamw.beta2));
        fact("eps", adamw.eps.to_string());
        fact("decay", adamw.decay.to_string());
        fact("decay of vectors", on(options.decay_vectors));
        fact("clip", options.clip.map_or_else(|| "0".to_string(), |norm| norm.to_string()));
        fact("seed", options.seed.to_string());
        fact("micro", gradients.rows.to_string());
        fact("packing", on(gradients.packing));
        let mean = match gradients.normalize {
            Normalize::Tokens => "tokens",
            Normalize::Sequences => "examples",
        };
        fact("mean", mean.to_string());
        let precision = match gradients.precision {
            Precision::Fast => "fast",
            Precision::F32 => "f32",
        };
        fact("precision", precision.to_string());
    }

    /// The facts as checkpoints of version 1 have them: their words must stay.
    pub(super) fn facts_of_version_1(&self) -> Result<Facts, Error> {
        let gradients = &self.options.gradients;
        let mut facts = Facts::new();
        let mut fact = |name: &str, value: String| drop(facts.insert(name.to_string(), value));
        fact(SAMPLED, hex(&self.model.digest()?));
        let what = if matches!(self.trained, Trained::Factors(_)) { "low-rank factors" } else { "weights" };
        fact("trained", format!("{what} of {}", trained(&self.trained)));
        if let Method::Lora(lora) = &self.method {
            fact("dropout", lora.dropout.to_string());
        }
        fact("adamw", format!("{:?}, decay of vectors {}", self.options.adamw, self.options.decay_vectors));
        fact("clip", format!("{:?}", self.options.clip));
        fact("rate", format!("{:?}", self.options.rate));
        fact("seed", self.options.seed.to_string());
        fact("rows", format!("{}, packing {}", gradients.rows, gradients.packing));
        fact("normalize", format!("{:?}", gradients.normalize));
        fact("precision", format!("{:?}", gradients.precision));
        Ok(facts)
    }
}

fn lora_facts(lora: &Lora, fact: &mut dyn FnMut(&str, String)) {
    fact("method", "low-rank factors".to_string());
    fact("dropout", lora.dropout.to_string());
    if let Some(pairs) = &lora.init {
        // Ranks and scales are those of the adapter, in the fact `trained`.
        return fact("init", format!("an adapter of {} pairs", pairs.len()));
    }
    fact("rank", lora.rank.to_string());
    fact("targets", lora.targets.to_string());
    fact("alpha", lora.alpha.to_string());
    fact("rslora", on(lora.rslora));
}

fn on(is: bool) -> String {
    if is { "on" } else { "off" }.to_string()
}

fn base(base: Base) -> &'static str {
    match base {
        Base::Nf4 => "nf4",
        Base::Nf4Dq => "nf4-dq",
        _ => "as stored",
    }
}

/// The number of trained tensors, and a hash of their names, ranks and scales.
fn trained(trained: &Trained) -> String {
    let mut hash = Sha256::new();
    let count = match trained {
        Trained::Factors(factors) => {
            factors.iter().for_each(|pair| hash.update(format!("{} {} {}\n", pair.target, pair.rank, pair.scale)));
            factors.len()
        }
        Trained::Weights(names) | Trained::Fresh { weights: names, .. } => {
            names.iter().for_each(|name| hash.update(format!("{name}\n")));
            names.len()
        }
    };
    format!("{count} tensors, {}", &hex(&hash.finalize())[..16])
}
