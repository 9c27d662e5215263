//! The records of a run, as JavaScript and a checkpoint have them.

use crate::error::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use train::{Position, Record};

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

/// What a checkpoint keeps beside the state of the trainer.
#[derive(Deserialize)]
struct Kept {
    position: String,
    records: Vec<(u64, Option<f64>, Option<f64>, f64, u64, Option<f64>)>,
}

/// The position in the examples, and the records so far.
pub fn position(position: Position, records: &[Record]) -> String {
    let record = |record: &Record| {
        let Record { step, loss, norm, rate, tokens, validation, skipped: _ } = record;
        json!([step, loss, norm, rate, tokens, validation])
    };
    json!({ "position": position.to_string(), "records": records.iter().map(record).collect::<Vec<_>>() }).to_string()
}

/// Reads what [`position`] has written.
pub fn read(kept: &str) -> Result<(Position, Vec<Record>), Failure> {
    let foreign = || Failure::new("checkpoint", "this checkpoint was not made by a page; `weft train --resume` goes on from it");
    let Kept { position, records } = serde_json::from_str(kept).map_err(|_| foreign())?;
    let record = |(step, loss, norm, rate, tokens, validation): (_, Option<f64>, Option<f64>, _, _, _)| {
        let (loss, norm) = (loss.unwrap_or(f64::NAN), norm.unwrap_or(f64::NAN));
        let skipped = (!loss.is_finite() || !norm.is_finite()).then(String::new);
        Record { step, loss, norm, rate, tokens, validation, skipped }
    };
    Ok((position.parse()?, records.into_iter().map(record).collect()))
}
