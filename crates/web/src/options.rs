//! Options of sessions and answers as JavaScript gives them. An unknown field is an error.

use crate::error::Failure;
use kernels::PlanOptions;
use model::chat::{Message, RenderOptions};
use model::{GenerateOptions, KvType, Precision, Sampling, SessionOptions};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    pub file_bytes: Option<u64>,
    pub memory_bytes: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Session {
    context: Option<u32>,
    kv: Option<String>,
    shift: Option<u32>,
    precision: Option<String>,
    chunk: Option<u32>,
    taps: Vec<String>,
    /// Sequences of a batch.
    sequences: Option<u32>,
}

/// The sequences that a batch may have.
const SEQUENCES: std::ops::RangeInclusive<u32> = 1..=256;

impl Session {
    /// The options, with a limit for the memory.
    pub fn options(self, limits: &Limits) -> Result<SessionOptions, Failure> {
        let kv = match self.kv.as_deref() {
            None | Some("f16") => KvType::F16,
            Some("f32") => KvType::F32,
            Some("q8_0") => KvType::Q8_0,
            Some(other) => return Err(Failure::unknown("kv", other, &["f16", "f32", "q8_0"])),
        };
        let precision = match self.precision.as_deref() {
            None | Some("fast") => Precision::Fast,
            Some("f32") => Precision::F32,
            Some(other) => return Err(Failure::unknown("precision", other, &["fast", "f32"])),
        };
        let sequences = self.sequences.unwrap_or(1);
        if !SEQUENCES.contains(&sequences) {
            let (least, most) = (SEQUENCES.start(), SEQUENCES.end());
            return Err(Failure::new(
                "bad-options",
                format!("sequences: {sequences} is not between {least} and {most}"),
            ));
        }
        let plan = PlanOptions::default().precision(precision).taps(self.taps);
        let options = SessionOptions::default().context(self.context).kv(kv).shift(self.shift).plan(plan);
        Ok(options.sequences(sequences).chunk(self.chunk.unwrap_or(0)).memory_bytes(limits.memory_bytes))
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Drawn {
    temperature: Option<f32>,
    top_k: Option<u32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    last_n: Option<u32>,
    seed: Option<u64>,
}

impl Drawn {
    pub fn sampling(self) -> Sampling {
        let usual = Sampling::default();
        Sampling {
            temperature: self.temperature.unwrap_or(usual.temperature),
            top_k: self.top_k.unwrap_or(usual.top_k),
            top_p: self.top_p.unwrap_or(usual.top_p),
            min_p: self.min_p.unwrap_or(usual.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(usual.repetition_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(usual.frequency_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(usual.presence_penalty),
            last_n: self.last_n.unwrap_or(usual.last_n),
            seed: self.seed.unwrap_or(usual.seed),
        }
    }
}

/// How a step of a batch draws: one way for all sequences, or one for each.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Draws {
    All(Drawn),
    Each(Vec<Drawn>),
}

impl Draws {
    /// The sampling of each sequence. The last one is also for all sequences behind it.
    pub fn samplings(self) -> Vec<Sampling> {
        match self {
            Self::All(drawn) => vec![drawn.sampling()],
            Self::Each(each) if each.is_empty() => vec![Sampling::default()],
            Self::Each(each) => each.into_iter().map(Drawn::sampling).collect(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Answer {
    sampling: Drawn,
    stops: Vec<String>,
    max_tokens: Option<usize>,
    pub tools: Option<Value>,
    thinking: Option<bool>,
}

impl Answer {
    /// How the prompt is rendered.
    pub fn render(&self) -> RenderOptions {
        let now = (js_sys::Date::now() / 1000.0) as i64;
        RenderOptions::default().tools(self.tools.clone()).enable_thinking(self.thinking).now_unix_s(now)
    }

    pub fn generate(self) -> GenerateOptions {
        GenerateOptions::default().sampling(self.sampling.sampling()).max_tokens(self.max_tokens).stops(self.stops)
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Rendered {
    tools: Option<Value>,
    thinking: Option<bool>,
}

impl Rendered {
    pub fn options(self) -> RenderOptions {
        Answer { tools: self.tools, thinking: self.thinking, ..Answer::default() }.render()
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Tokenized {
    /// Whether names of control tokens are tokens.
    pub special: bool,
    /// Whether the token that begins a text comes first, where the model has one.
    pub start: bool,
}

/// Messages of a conversation, as OpenAI's interface has them.
pub fn messages(value: &wasm_bindgen::JsValue) -> Result<Vec<Message>, Failure> {
    crate::json::read(value, "messages")
}
