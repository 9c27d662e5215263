//! The reports of `--stats` and `--json` about an answer.

use super::answer::Answer;
use super::talk::Talk;
use super::tools;
use crate::lora;
use kernels::{Executor, Spent};
use model::Finish;
use serde_json::{Value, json};
use std::time::Duration;

/// A line with the speed, the device, and the seed that reproduces the answer.
pub fn stats(talk: &Talk, answer: &Answer) -> String {
    let model = talk.session.model();
    let part = |name: &str, tokens: usize, time: Duration, rate: Option<f64>| {
        let rate = rate.map_or_else(String::new, |r| format!(" ({r:.1} tokens/s)"));
        let plural = if tokens == 1 { "" } else { "s" };
        format!("{name} {tokens} token{plural} in {:.2} s{rate}", time.as_secs_f64())
    };
    let load = loading(talk);
    let prompt = part("prompt", answer.read_tokens, answer.prefill, answer.prefill_rate());
    let reply = part("answer", answer.ids.len(), answer.decode, answer.decode_rate());
    let sampling = &talk.options.sampling;
    let draw = if sampling.temperature == 0.0 { "greedy".to_string() } else { format!("seed {}", sampling.seed) };
    let place = format!("{} ({})", model.executor().name(), model.executor().kind());
    let context = format!("context {} of {}", talk.session.tokens().len(), talk.session.context());
    format!("{load}; {prompt}; {reply}; {place}, KV {}, {context}, {draw}", talk.args.place.kv().name())
}

/// The times before the prompt. Shaders are compiled while the weights load, so the time that a
/// plan waited for them is reported separately.
fn loading(talk: &Talk) -> String {
    let (load, weights) = (talk.load.as_secs_f64(), talk.weights.as_secs_f64());
    let Executor::Gpu(device) = talk.session.model().executor() else {
        return format!("load {load:.2} s (weights {weights:.2} s)");
    };
    let Spent { opening, planning, building, waiting, pipelines } = device.spent();
    let [opening, planning, building, waiting] = [opening, planning, building, waiting].map(|time| time.as_secs_f64());
    format!(
        "load {load:.2} s (device {opening:.2} s, weights {weights:.2} s); plans {planning:.2} s; \
         {pipelines} shaders {building:.2} s, waited for {waiting:.2} s"
    )
}

/// The whole answer as one JSON object.
pub fn json(talk: &Talk, answer: &Answer) -> Value {
    let model = talk.session.model();
    let (finish, stop) = match &answer.finish {
        Finish::End => ("end", None),
        Finish::Stop(text) => ("stop", Some(text)),
        Finish::Length => ("length", None),
        Finish::Context => ("context", None),
        Finish::Cancelled => ("cancelled", None),
    };
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let spent = if let Executor::Gpu(device) = model.executor() { Some(device.spent()) } else { None };
    json!({
        "text": answer.reply.text,
        "thinking": (!answer.reply.thinking.is_empty()).then_some(&answer.reply.thinking),
        "tool_calls": answer.reply.tool_calls.iter().map(tools::json).collect::<Vec<_>>(),
        "malformed_tool_calls": answer.reply.malformed,
        "tokens": answer.ids,
        "log_probs": answer.log_probs,
        "finish": finish,
        "stop": stop,
        "prompt_tokens": answer.prompt_tokens,
        "model": talk.args.source.name(),
        "device": model.executor().name(),
        "executor": model.executor().kind(),
        "kv": talk.args.place.kv().name(),
        "adapters": lora::report(talk.session.adapters()),
        "seed": talk.options.sampling.seed,
        "timings": {
            "load_ms": ms(talk.load),
            "weights_ms": ms(talk.weights),
            "device_ms": spent.map(|s| ms(s.opening)),
            "plans_ms": spent.map(|s| ms(s.planning)),
            "shaders_ms": spent.map(|s| ms(s.building)),
            "shaders_waited_ms": spent.map(|s| ms(s.waiting)),
            "pipelines": spent.map(|s| s.pipelines),
            "prefill_ms": ms(answer.prefill),
            "prefill_tokens_per_second": answer.prefill_rate(),
            "decode_ms": ms(answer.decode),
            "decode_tokens_per_second": answer.decode_rate(),
        },
    })
}
