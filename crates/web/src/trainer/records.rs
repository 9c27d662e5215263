//! The records of a run, as JavaScript and a checkpoint have them.

use crate::error::Failure;
use crate::json;
use serde_json::{Value, json};
use train::{Position, Record};
use wasm_bindgen::JsValue;

/// A record as `StepResult`.
pub fn to_json(record: &Record) -> Value {
    let Record { step, loss, norm, rate, tokens, validation, skipped } = record;
    json!({
        "number": step,
        "loss": loss,
        "norm": norm,
        "rate": rate,
        "tokens": tokens,
        "validation": validation,
        "skipped": skipped.is_some(),
    })
}

/// A record as JavaScript has it, with these numbers also where they are not finite: JSON has no
/// such numbers.
pub fn to_js(record: &Record, json: &Value) -> JsValue {
    let object = json::write(json);
    for (key, value) in [("loss", record.loss), ("norm", record.norm)] {
        json::set(&object, key, &value.into());
    }
    object
}

/// What a checkpoint keeps beside the state of the trainer: the position in the examples in a line,
/// and a line for each step.
pub fn kept(position: Position, records: &[Record]) -> String {
    let mut text = format!("{position}\n");
    records.iter().for_each(|record| text.push_str(&format!("{}\n", record.to_json())));
    text
}

/// Reads what [`kept`] has written.
pub fn read(kept: &str) -> Result<(Position, Vec<Record>), Failure> {
    let (position, lines) = kept.split_once('\n').unwrap_or((kept, ""));
    let broken = |error: std::io::Error| Failure::new("checkpoint", error.to_string());
    Ok((position.parse()?, Record::read_all(lines.as_bytes()).map_err(broken)?))
}
