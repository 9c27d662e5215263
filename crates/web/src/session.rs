//! A conversation.

use crate::adapter::Adapters;
use crate::cancel::Cancel;
use crate::error::Failure;
use crate::json;
use crate::model::Model;
use crate::opened::tell;
use crate::options::{self, Answer};
use js_sys::{Array, Float32Array, Function, Object};
use model::chat::{Event, Parser, Reply};
use model::tokenizer::Special;
use model::{Finish, GenerateOptions, Tapped};
use serde_json::{Value, json};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// The tokens of one conversation and their keys and values.
#[wasm_bindgen]
pub struct Session {
    session: model::Session,
}

/// The prompt of an answer, and what takes the answer apart.
struct Prompt {
    ids: Vec<u32>,
    parser: Option<Parser>,
    options: GenerateOptions,
}

impl Session {
    pub fn new(session: model::Session) -> Self {
        Self { session }
    }

    async fn answer(
        &mut self,
        prompt: Prompt,
        on_token: &Function,
        report: &Function,
        cancel: &Cancel,
    ) -> Result<JsValue, Failure> {
        let Prompt { ids, mut parser, options } = prompt;
        let flag = self.session.cancel_flag();
        let _guard = cancel.sets(&flag);
        self.session.set_prompt(&ids)?;
        let evaluated = (self.session.tokens().len() - self.session.evaluated()).max(1);
        let began = now();
        let report = report.clone();
        let mut answer =
            self.session.generate_with(options)?.with_progress(move |progress| tell(&report, "prompt", progress));
        let (mut reply, mut first, mut tokens) = (Reply::default(), None, 0);
        let mut parts = |parser: &mut Option<Parser>, text: String| {
            let events = parser.as_mut().map_or_else(|| vec![Event::Text(text.clone())], |parser| parser.push(&text));
            take(&mut reply, events)
        };
        loop {
            if cancel.raised() {
                flag.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            let Some(token) = answer.next_async().await else { break };
            let token = token?;
            first.get_or_insert_with(now);
            tokens += 1;
            let (text, thinking) = parts(&mut parser, token.text);
            on_token
                .call1(
                    &JsValue::NULL,
                    &json::write(&json!({
                        "id": token.id, "text": text, "thinking": thinking, "logProb": token.log_prob,
                    })),
                )
                .map_err(|thrown| {
                    Failure::new("callback", "the function for tokens threw an error").thrown(Some(thrown))
                })?;
        }
        let finish = answer.finish().cloned().unwrap_or(Finish::End);
        drop(answer);
        take(&mut reply, parser.as_mut().map(Parser::finish).unwrap_or_default());
        let (end, first) = (now(), first.unwrap_or_else(now));
        Ok(json::write(&json!({
            "reason": reason(&finish),
            "content": reply.text,
            "thinking": reply.thinking,
            "toolCalls": calls(&reply),
            "message": reply.to_message(),
            "promptTokens": ids.len(),
            "evaluatedTokens": evaluated,
            "tokens": tokens,
            "promptSeconds": (first - began) / 1000.0,
            "seconds": (end - first) / 1000.0,
        })))
    }
}

/// Adds events to a reply. Returns the text and the thinking to show now.
fn take(reply: &mut Reply, events: Vec<Event>) -> (String, String) {
    let (mut text, mut thinking) = (String::new(), String::new());
    for event in events {
        match &event {
            Event::Text(part) | Event::Malformed { text: part, .. } => text.push_str(part),
            Event::Thinking(part) => thinking.push_str(part),
            Event::ToolCall(_) => {}
        }
        reply.add(event);
    }
    (text, thinking)
}

fn calls(reply: &Reply) -> Vec<Value> {
    reply.tool_calls.iter().map(|call| json!({ "name": call.name, "arguments": call.arguments })).collect()
}

fn reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::End => "end",
        Finish::Stop(_) => "stop",
        Finish::Length => "length",
        Finish::Context => "context",
        Finish::Cancelled => "cancelled",
    }
}

/// A value of a tap: `Tap`.
fn tap(tapped: &Tapped) -> JsValue {
    let object = json::write(&json!({ "name": tapped.name, "layer": tapped.layer }));
    json::set(&object, "values", &Float32Array::from(tapped.values.as_slice()));
    object
}

/// Milliseconds since 1970.
fn now() -> f64 {
    js_sys::Date::now()
}

#[wasm_bindgen]
impl Session {
    /// Context length in tokens.
    #[wasm_bindgen(getter)]
    pub fn context(&self) -> usize {
        self.session.context()
    }

    /// The ids of all tokens so far.
    pub fn tokens(&self) -> Vec<u32> {
        self.session.tokens().to_vec()
    }

    /// Answers a conversation.
    pub async fn send(
        &mut self,
        messages: JsValue,
        options: JsValue,
        on_token: Function,
        report: Function,
        cancel: &Cancel,
    ) -> Result<JsValue, Failure> {
        let options: Answer = json::read(&options, "options")?;
        let messages = options::messages(&messages)?;
        let (model, render) = (self.session.model(), options.render());
        let (template, tokenizer) = (model.template(), model.tokenizer());
        let ids = template.encode(tokenizer, &messages, &render).map_err(model::Error::from)?;
        let parser = template.parser(tokenizer, &ids).with_tools(options.tools.clone());
        let shown = template.format().controls(tokenizer);
        let prompt = Prompt { ids, parser: Some(parser), options: options.generate().shown(shown) };
        self.answer(prompt, &on_token, &report, cancel).await
    }

    /// Goes on with a raw text.
    pub async fn complete(
        &mut self,
        text: String,
        options: JsValue,
        on_token: Function,
        report: Function,
        cancel: &Cancel,
    ) -> Result<JsValue, Failure> {
        let options: Answer = json::read(&options, "options")?;
        let ids = self.session.model().tokenizer().encode_prompt(&text, Special::Parse).map_err(model::Error::from)?;
        let prompt = Prompt { ids, parser: None, options: options.generate() };
        self.answer(prompt, &on_token, &report, cancel).await
    }

    /// Logits [tokens, vocabulary] of these ids, which replace the tokens of the session, and the
    /// values of the session's taps: `Logits`.
    pub async fn logits(&mut self, ids: Vec<u32>, cancel: &Cancel) -> Result<JsValue, Failure> {
        let _guard = cancel.sets(&self.session.cancel_flag());
        self.session.reset();
        self.session.feed(&ids)?;
        let (mut all, mut tapped): (Vec<f32>, Vec<Tapped>) = (vec![], vec![]);
        let take = |_: usize, rows: &[f32], taps: &[Tapped]| {
            all.extend_from_slice(rows);
            // Each chunk gives the same taps in the same order.
            if tapped.is_empty() {
                tapped = taps.to_vec();
            } else {
                tapped.iter_mut().zip(taps).for_each(|(all, chunk)| all.values.extend_from_slice(&chunk.values));
            }
        };
        self.session.logits_async(take).await?;
        let object = Object::new();
        json::set(&object, "logits", &Float32Array::from(all.as_slice()));
        let taps: Array = tapped.iter().map(tap).collect();
        json::set(&object, "taps", &taps);
        Ok(object.into())
    }

    /// Replaces the adapters in force.
    #[wasm_bindgen(js_name = setAdapters)]
    pub fn set_adapters(&mut self, adapters: &Adapters) -> Result<(), Failure> {
        Ok(self.session.set_adapters(adapters.0.clone())?)
    }

    /// Forgets all tokens after the first `tokens`.
    pub fn rollback(&mut self, tokens: usize) {
        self.session.rollback(tokens);
    }

    /// The bytes of a snapshot, which `weft run --load-session` reads, too.
    pub async fn save(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![];
        self.session.save_async(&mut bytes).await?;
        Ok(bytes)
    }

    /// Goes on from a snapshot.
    pub async fn load(&mut self, bytes: Vec<u8>) -> Result<(), Failure> {
        Ok(self.session.load_async(&mut bytes.as_slice()).await?)
    }

    /// Goes on with another handle of the same model, after its device was lost, and with adapters
    /// that were loaded beside it.
    #[wasm_bindgen(js_name = moveTo)]
    pub async fn move_to(&mut self, model: &Model, adapters: &Adapters) -> Result<(), Failure> {
        Ok(self.session.move_to_async(&model.model, adapters.0.clone()).await?)
    }
}
