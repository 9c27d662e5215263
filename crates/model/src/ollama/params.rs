//! The `PARAMETER` lines of a Modelfile.

use super::OllamaError;
use crate::error::json_reason;
use serde_json::{Map, Number, Value};
use std::ops::RangeInclusive;

/// Largest number of characters of a name or value that a note quotes.
const MOST_QUOTED: usize = 40;

/// What one of Ollama's parameters does in Weft.
enum Effect {
    /// It applies. Values are within these bounds.
    Applies(RangeInclusive<f64>),
    /// It changes the speed or the use of memory.
    Speed,
    /// It does not apply. With this value it would change nothing.
    Missing { neutral: f64 },
    /// It does not apply, and has an effect only together with another parameter.
    Part,
}

use Effect::{Applies, Missing, Part, Speed};

/// Every parameter that Ollama reads or has read (`api.Options` and `api.Runner` of its source).
static EFFECTS: [(&str, Effect); 37] = [
    ("temperature", Applies(0.0..=1e6)),
    ("top_k", Applies(-1.0..=1e9)),
    ("top_p", Applies(0.0..=1.0)),
    ("min_p", Applies(0.0..=1.0)),
    ("repeat_penalty", Applies(f32::MIN_POSITIVE as f64..=1e6)),
    ("frequency_penalty", Applies(-1e6..=1e6)),
    ("presence_penalty", Applies(-1e6..=1e6)),
    ("repeat_last_n", Applies(-1.0..=4_294_967_295.0)),
    ("seed", Applies(f64::NEG_INFINITY..=f64::INFINITY)),
    ("num_ctx", Applies(f64::NEG_INFINITY..=f64::INFINITY)),
    ("num_predict", Applies(f64::NEG_INFINITY..=f64::INFINITY)),
    ("num_keep", Applies(f64::NEG_INFINITY..=f64::INFINITY)),
    ("typical_p", Missing { neutral: 1.0 }),
    ("tfs_z", Missing { neutral: 1.0 }),
    ("mirostat", Missing { neutral: 0.0 }),
    ("mirostat_tau", Part),
    ("mirostat_eta", Part),
    ("penalize_newline", Missing { neutral: 1.0 }),
    ("rope_frequency_base", Missing { neutral: 0.0 }),
    ("rope_frequency_scale", Missing { neutral: 1.0 }),
    ("num_gqa", Missing { neutral: 1.0 }),
    ("embedding_only", Missing { neutral: 0.0 }),
    ("vocab_only", Missing { neutral: 0.0 }),
    ("num_batch", Speed),
    ("num_gpu", Speed),
    ("main_gpu", Speed),
    ("num_thread", Speed),
    ("num_gpu_layers", Speed),
    ("draft_num_predict", Speed),
    ("use_mmap", Speed),
    ("use_mlock", Speed),
    ("numa", Speed),
    ("low_vram", Speed),
    ("f16_kv", Speed),
    ("logits_all", Speed),
    ("flash_attn", Speed),
    ("tensor_split", Speed),
];

/// The `PARAMETER` lines of a Modelfile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// Numbers by name, such as `temperature`, `top_k`, `num_ctx`.
    numbers: Vec<(String, Number)>,
    /// Texts that end an answer.
    pub stop: Vec<String>,
    /// The parameters that change answers in Ollama and do not apply in Weft, with their values.
    pub unapplied: Vec<String>,
}

impl Params {
    /// A number by Ollama's name for it; `None` if the Modelfile does not set it.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.find(name)?.as_f64()
    }

    fn find(&self, name: &str) -> Option<&Number> {
        self.numbers.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// A number that applies, checked, and in Weft's terms where Ollama has other ones: a `top_k`
    /// of -1 keeps all tokens, a `top_p` of 0 keeps one, and a `repeat_last_n` of -1 counts all
    /// tokens.
    ///
    /// # Errors
    /// [`OllamaError::ParamRange`].
    pub fn checked(&self, name: &str) -> Result<Option<f64>, OllamaError> {
        let Some(found) = self.number(name) else { return Ok(None) };
        let effect = EFFECTS.iter().find(|(known, _)| *known == name).map(|(_, effect)| effect);
        let Some(Applies(bounds)) = effect else { return Ok(Some(found)) };
        if !bounds.contains(&found) {
            return Err(OllamaError::ParamRange {
                param: name.to_string(),
                found,
                least: *bounds.start(),
                most: *bounds.end(),
            });
        }
        Ok(Some(match name {
            "top_k" => found.max(0.0),
            "top_p" => found.max(f64::from(f32::MIN_POSITIVE)),
            "repeat_last_n" if found < 0.0 => f64::from(u32::MAX),
            _ => found,
        }))
    }

    /// The seed; `None` if the Modelfile sets none or asks for another one in every run (-1).
    pub fn seed(&self) -> Option<u64> {
        let seed = self.find("seed")?;
        seed.as_u64().or_else(|| seed.as_f64().filter(|seed| *seed >= 0.0).map(|seed| seed as u64))
    }

    /// The largest number of tokens in an answer; `None` if the Modelfile sets no limit.
    pub fn max_tokens(&self) -> Option<usize> {
        self.number("num_predict").filter(|n| *n >= 1.0).map(|n| n as usize)
    }

    /// The stops that are no empty text.
    pub fn stops(&self) -> Vec<String> {
        self.stop.iter().filter(|stop| !stop.is_empty()).cloned().collect()
    }

    /// Sampling by these parameters; what they do not set is that of `base`.
    ///
    /// # Errors
    /// [`OllamaError::ParamRange`].
    #[cfg(feature = "gpu")]
    pub fn sampling(&self, base: crate::Sampling) -> Result<crate::Sampling, OllamaError> {
        let number =
            |name: &str, default: f32| self.checked(name).map(|value| value.map_or(default, |value| value as f32));
        let count =
            |name: &str, default: u32| self.checked(name).map(|value| value.map_or(default, |value| value as u32));
        Ok(crate::Sampling {
            temperature: number("temperature", base.temperature)?,
            top_k: count("top_k", base.top_k)?,
            top_p: number("top_p", base.top_p)?,
            min_p: number("min_p", base.min_p)?,
            repetition_penalty: number("repeat_penalty", base.repetition_penalty)?,
            frequency_penalty: number("frequency_penalty", base.frequency_penalty)?,
            presence_penalty: number("presence_penalty", base.presence_penalty)?,
            last_n: count("repeat_last_n", base.last_n)?,
            seed: self.seed().unwrap_or(base.seed),
        })
    }

    pub(super) fn parse(json: &str) -> Result<Self, String> {
        let map: Map<String, Value> = serde_json::from_str(json).map_err(|error| json_reason(&error))?;
        let mut params = Self::default();
        for (name, value) in map {
            params.add(name, value)?;
        }
        Ok(params)
    }

    fn add(&mut self, name: String, value: Value) -> Result<(), String> {
        let effect = EFFECTS.iter().find(|(known, _)| *known == name).map(|(_, effect)| effect);
        match (effect, value) {
            (None, Value::String(text)) if name == "stop" => self.stop.push(text),
            (None, Value::Array(items)) if name == "stop" => {
                let text = |item: Value| item.as_str().map(str::to_owned).ok_or("a stop is not a string");
                self.stop = items.into_iter().map(text).collect::<Result<_, _>>()?;
            }
            (Some(Applies(_)), Value::Number(number)) => self.numbers.push((name, number)),
            (Some(Applies(_)), _) => return Err(format!("{name} is not a number")),
            (Some(Speed | Part), _) => {}
            (Some(Missing { neutral }), value) if as_number(&value) == Some(*neutral) => {}
            (_, value) => self.unapplied.push(format!("{} = {}", quoted(&name), quoted(&value.to_string()))),
        }
        Ok(())
    }
}

/// The number that a value stands for; a switch is 0 or 1.
fn as_number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|on| f64::from(u8::from(on))))
}

/// The beginning of a text, for a note.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MOST_QUOTED) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}
