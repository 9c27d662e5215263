//! Sampling parameters: from flags, else from Ollama, else from the model file, else our defaults.

use crate::args::{number, range};
use anyhow::{Result, anyhow};
use gguf::{FromValue, Gguf};
use model::Sampling;
use model::ollama::Params;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;

/// The heading of these flags in the help.
const SAMPLING: &str = "Sampling";

/// Sampling flags
#[derive(clap::Args, Clone, Debug)]
pub struct Flags {
    /// Temperature; 0 always chooses the most probable token [default: the model's, else 0.7]
    #[arg(long, help_heading = SAMPLING, value_name = "T", allow_negative_numbers = true, value_parser = |t: &str| number(t, 0.0, 1e6))]
    temp: Option<f32>,

    /// Choose among the K most probable tokens; 0 for all [default: the model's, else 40]
    #[arg(long, help_heading = SAMPLING, value_name = "K")]
    top_k: Option<u32>,

    /// Choose among the most probable tokens whose probabilities add up to P; 1 for all [default:
    /// the model's, else 0.95]
    #[arg(long, help_heading = SAMPLING, value_name = "P", allow_negative_numbers = true, value_parser = |t: &str| number(t, f32::MIN_POSITIVE, 1.0))]
    top_p: Option<f32>,

    /// Drop tokens that are less probable than P times the most probable token; 0 for none
    /// [default: the model's, else 0]
    #[arg(long, help_heading = SAMPLING, value_name = "P", allow_negative_numbers = true, value_parser = |t: &str| number(t, 0.0, 1.0))]
    min_p: Option<f32>,

    /// Divide the logits of tokens seen before by X; 1 for no penalty [default: the model's, else
    /// 1]
    #[arg(long, help_heading = SAMPLING, value_name = "X", allow_negative_numbers = true, value_parser = |t: &str| number(t, f32::MIN_POSITIVE, 1e6))]
    repeat_penalty: Option<f32>,

    /// Subtract X from a logit for every time its token was seen before [default: 0]
    #[arg(long, help_heading = SAMPLING, value_name = "X", allow_negative_numbers = true, value_parser = |t: &str| number(t, -1e6, 1e6))]
    frequency_penalty: Option<f32>,

    /// Subtract X from the logit of every token seen before [default: 0]
    #[arg(long, help_heading = SAMPLING, value_name = "X", allow_negative_numbers = true, value_parser = |t: &str| number(t, -1e6, 1e6))]
    presence_penalty: Option<f32>,

    /// Number of last tokens that count as seen before; 0 for none [default: the model's, else 64]
    #[arg(long, help_heading = SAMPLING, value_name = "N")]
    repeat_last_n: Option<u32>,

    /// Random seed: the same seed gives the same text on the same device [default: a new seed in
    /// each run]
    #[arg(long, help_heading = SAMPLING, value_name = "N")]
    seed: Option<u64>,
}

impl Flags {
    /// The parameters for a model: from the flags, else from Ollama, else from the file. The
    /// default model is greedy unless a flag says otherwise.
    pub fn resolve(&self, file: &Gguf, is_default: bool, params: &Params) -> Result<Sampling> {
        let base = if is_default { Sampling::greedy() } else { Sampling::default() };
        let from = Others { file, params };
        let most = i64::from(u32::MAX);
        let (last_n, top_k) = (self.repeat_last_n.map(i64::from), self.top_k.map(i64::from));
        Ok(Sampling {
            temperature: from.pick(self.temp, "temperature", "temp", "--temp", 0.0..=1e6, base.temperature)?,
            top_k: from.pick(top_k, "top_k", "top_k", "--top-k", 0..=most, base.top_k.into())? as u32,
            top_p: from.pick(self.top_p, "top_p", "top_p", "--top-p", f32::MIN_POSITIVE..=1.0, base.top_p)?,
            min_p: from.pick(self.min_p, "min_p", "min_p", "--min-p", 0.0..=1.0, base.min_p)?,
            repetition_penalty: from.pick(
                self.repeat_penalty,
                "repeat_penalty",
                "penalty_repeat",
                "--repeat-penalty",
                f32::MIN_POSITIVE..=1e6,
                base.repetition_penalty,
            )?,
            frequency_penalty: from
                .ollama(self.frequency_penalty, "frequency_penalty", "--frequency-penalty")?
                .unwrap_or(base.frequency_penalty),
            presence_penalty: from
                .ollama(self.presence_penalty, "presence_penalty", "--presence-penalty")?
                .unwrap_or(base.presence_penalty),
            last_n: from.pick(
                last_n,
                "repeat_last_n",
                "penalty_last_n",
                "--repeat-last-n",
                0..=most,
                base.last_n.into(),
            )? as u32,
            seed: self.seed.or_else(|| params.seed()).unwrap_or_else(any_seed),
        })
    }
}

/// The sources of the sampling parameters for which no flag is given.
struct Others<'a> {
    file: &'a Gguf,
    params: &'a Params,
}

/// A number that Ollama's parameters, which are f64, become.
trait FromNumber: Sized {
    fn from_number(number: f64) -> Self;
    fn number(self) -> f64;
}

impl FromNumber for f32 {
    fn from_number(number: f64) -> Self {
        number as f32
    }

    fn number(self) -> f64 {
        self.into()
    }
}

impl FromNumber for i64 {
    fn from_number(number: f64) -> Self {
        number as i64
    }

    fn number(self) -> f64 {
        self as f64
    }
}

impl<'a> Others<'a> {
    /// The flag, else Ollama's parameter.
    fn ollama<T: FromNumber>(&self, flag: Option<T>, name: &str, option: &str) -> Result<Option<T>> {
        match flag {
            Some(value) => Ok(Some(value)),
            None => {
                Ok(self.params.checked(name).map_err(|error| anyhow!("{error}; give {option}"))?.map(T::from_number))
            }
        }
    }

    /// The flag, else Ollama's parameter, else the file's `general.sampling.KEY` (llama.cpp's key),
    /// else the default.
    fn pick<T: FromNumber + FromValue<'a> + PartialOrd + Display + Copy>(
        &self,
        flag: Option<T>,
        name: &str,
        key: &str,
        option: &str,
        bounds: RangeInclusive<T>,
        default: T,
    ) -> Result<T> {
        if let Some(value) = self.ollama(flag, name, option)? {
            return Ok(value);
        }
        let key = format!("general.sampling.{key}");
        match self.file.get_opt::<T>(&key) {
            Ok(None) => Ok(default),
            Ok(Some(value)) if bounds.contains(&value) => Ok(value),
            Ok(Some(value)) => Err(anyhow!(
                "the file recommends {key} = {value}, but it must be {}; give {option}",
                range(bounds.start().number(), bounds.end().number())
            )),
            Err(error) => Err(anyhow!("{error}; give {option}")),
        }
    }
}

impl Flags {
    /// Whether a flag gives the seed.
    pub fn has_seed(&self) -> bool {
        self.seed.is_some()
    }

    /// The parameters of a saved session, changed by the flags that are given.
    pub fn over(&self, saved: &Sampling) -> Sampling {
        Sampling {
            temperature: self.temp.unwrap_or(saved.temperature),
            top_k: self.top_k.unwrap_or(saved.top_k),
            top_p: self.top_p.unwrap_or(saved.top_p),
            min_p: self.min_p.unwrap_or(saved.min_p),
            repetition_penalty: self.repeat_penalty.unwrap_or(saved.repetition_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(saved.frequency_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(saved.presence_penalty),
            last_n: self.repeat_last_n.unwrap_or(saved.last_n),
            seed: self.seed.unwrap_or(saved.seed),
        }
    }
}

/// A seed that differs in each run and is short enough to type.
pub fn any_seed() -> u64 {
    RandomState::new().hash_one(std::process::id()) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::GgufBuilder;

    const NONE: Flags = Flags {
        temp: None,
        top_k: None,
        top_p: None,
        min_p: None,
        repeat_penalty: None,
        frequency_penalty: None,
        presence_penalty: None,
        repeat_last_n: None,
        seed: Some(1),
    };

    fn file(builder: GgufBuilder<'_>) -> Gguf {
        Gguf::from_bytes(builder.set("general.architecture", "qwen3").to_bytes().unwrap()).unwrap()
    }

    #[test]
    fn a_flag_beats_the_file_and_the_file_beats_our_default() {
        let file = file(GgufBuilder::new().set("general.sampling.temp", 0.6f32).set("general.sampling.top_k", 20i32));
        let sampling = NONE.resolve(&file, false, &Params::default()).unwrap();
        assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p), (0.6, 20, Sampling::default().top_p));
        let sampling = Flags { temp: Some(1.5), ..NONE }.resolve(&file, false, &Params::default()).unwrap();
        assert_eq!((sampling.temperature, sampling.top_k, sampling.seed), (1.5, 20, 1));
    }

    #[test]
    fn the_default_model_is_greedy_unless_asked() {
        let file = file(GgufBuilder::new());
        assert_eq!(NONE.resolve(&file, true, &Params::default()).unwrap().temperature, 0.0);
        assert_eq!(
            Flags { temp: Some(0.5), ..NONE }.resolve(&file, true, &Params::default()).unwrap().temperature,
            0.5
        );
    }

    #[test]
    fn a_session_that_goes_on_is_sampled_as_it_was_but_for_flags() {
        let saved = Sampling { temperature: 0.3, top_k: 7, seed: 9, ..Sampling::default() };
        let flags = Flags { seed: None, top_k: Some(3), ..NONE };
        assert_eq!(flags.over(&saved), Sampling { top_k: 3, ..saved });
    }

    #[test]
    fn a_recommendation_out_of_bounds_names_its_key_and_the_way_out() {
        let file =
            file(GgufBuilder::new().set("general.sampling.top_p", f32::NAN).set("general.sampling.top_k", -1i32));
        let error = NONE.resolve(&file, false, &Params::default()).unwrap_err().to_string();
        assert!(error.contains("general.sampling.top_k") && error.contains("--top-k"), "{error}");
        let error = Flags { top_k: Some(0), ..NONE }.resolve(&file, false, &Params::default()).unwrap_err().to_string();
        assert!(error.contains("general.sampling.top_p"), "{error}");
    }
}
