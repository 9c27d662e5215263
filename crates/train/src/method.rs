//! What a trainer changes: low-rank factors beside a model, or the weights of the model.

use crate::error::Error;
use crate::parameters::Trained;
use crate::targets::Targets;
use kernels::Weights;
use model::FactorPair;

/// What a trainer changes.
#[derive(Clone, Debug)]
pub enum Method {
    Lora(Lora),
    Full(Full),
}

/// Low-rank factors B A beside the weights of a model, which stay as they are (Hu et al. 2021,
/// arXiv 2106.09685).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Lora {
    pub targets: Targets,
    pub rank: u32,
    pub alpha: f32,
    /// Whether the scale of B A is alpha / sqrt(rank), not alpha / rank (arXiv 2312.03732).
    pub rslora: bool,
    /// The probability that an element of the rows that A reads becomes zero while training. It
    /// does not apply to factors of the embedding and of the head.
    pub dropout: f32,
    /// Decides the first values of A. B starts as zero.
    pub seed: u64,
    /// Factors to go on from, in place of new ones. Their ranks and scales are their own.
    /// [`Model::factors_of`](model::Model::factors_of) reads them from a file.
    pub init: Option<Vec<FactorPair>>,
}

/// All weights of a model: matrices, norms, biases, tied embeddings.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Full {
    /// Start from random numbers of this seed, and not from the weights of the file.
    pub fresh: Option<u64>,
}

impl Lora {
    /// Factors of this rank over all linear layers, with an alpha of twice the rank.
    #[must_use]
    pub fn new(rank: u32) -> Self {
        let targets = Targets::default();
        Self { targets, rank, alpha: 2.0 * rank as f32, rslora: false, dropout: 0.0, seed: 0, init: None }
    }

    #[must_use]
    pub fn targets(self, targets: Targets) -> Self {
        Self { targets, ..self }
    }

    #[must_use]
    pub fn alpha(self, alpha: f32) -> Self {
        Self { alpha, ..self }
    }

    /// Whether the scale of B A is alpha / sqrt(rank).
    #[must_use]
    pub fn rslora(self, rslora: bool) -> Self {
        Self { rslora, ..self }
    }

    /// The probability that an element of the rows that A reads becomes zero, from 0 to below 1.
    #[must_use]
    pub fn dropout(self, dropout: f32) -> Self {
        Self { dropout, ..self }
    }

    /// Decides the first values of A.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Factors to go on from, in place of new ones.
    #[must_use]
    pub fn init(self, factors: Vec<FactorPair>) -> Self {
        Self { init: Some(factors), ..self }
    }

    /// The factor on B A. It is computed in f64, as PEFT does.
    #[must_use]
    pub fn scale(&self) -> f32 {
        let rank = f64::from(self.rank);
        (f64::from(self.alpha) / if self.rslora { rank.sqrt() } else { rank }) as f32
    }
}

impl Full {
    /// Start from random numbers of this seed, and not from the weights of the file.
    #[must_use]
    pub fn fresh(self, seed: u64) -> Self {
        Self { fresh: Some(seed) }
    }
}

impl Method {
    /// The tensors that are trained, with their first values.
    ///
    /// # Errors
    /// [`Error::NoTarget`] and [`Error::NotTrained`].
    pub fn trained(&self, weights: &Weights) -> Result<Trained, Error> {
        match self {
            Self::Lora(Lora { init: Some(factors), .. }) => Ok(Trained::Factors(factors.clone())),
            Self::Lora(lora) => {
                Ok(Trained::Factors(lora.targets.factors(weights, lora.rank, lora.scale(), lora.seed)?))
            }
            Self::Full(Full { fresh }) => {
                let names = Trained::names_of(weights);
                Ok(fresh.map_or_else(
                    || Trained::Weights(names.clone()),
                    |seed| Trained::Fresh { weights: names.clone(), seed },
                ))
            }
        }
    }

    /// The probability that an element of the rows that A reads becomes zero.
    pub(crate) fn dropout(&self) -> f32 {
        match self {
            Self::Lora(lora) => lora.dropout,
            Self::Full(_) => 0.0,
        }
    }
}

impl From<Lora> for Method {
    fn from(lora: Lora) -> Self {
        Self::Lora(lora)
    }
}

impl From<Full> for Method {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}
