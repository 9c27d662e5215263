//! The log of a run: one JSON object for each step.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read};

/// A step in the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The number of the step; the first one is 1.
    pub step: u64,
    /// The loss of its batch before the step, in nats; not finite if the step was skipped for it.
    pub loss: f64,
    /// The norm of all gradients together, before clipping.
    pub norm: f64,
    /// The learning rate.
    pub rate: f64,
    /// Tokens of the batch.
    pub tokens: u64,
    /// The loss of the held-out examples after the step, if it was computed.
    pub validation: Option<f64>,
    /// Where a number that is not finite began, if the step was skipped.
    pub skipped: Option<String>,
}

impl Record {
    /// A number that is not finite is null.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { step, loss, norm, rate, tokens, validation, skipped } = self;
        let mut line = json!({ "step": step, "loss": loss, "norm": norm, "rate": rate, "tokens": tokens });
        if let Some(loss) = validation {
            line["validation"] = json!(loss);
        }
        if let Some(first) = skipped {
            line["skipped"] = json!(first);
        }
        line
    }

    /// Reads a log, which has the text of a record in each line, by rising steps. What follows the
    /// first line that is no such record is left out.
    ///
    /// # Errors
    /// Errors of `from`.
    pub fn read_all(from: impl Read) -> io::Result<Vec<Self>> {
        read(from).map(|(records, _)| records)
    }

    fn from_json(line: &Value) -> Option<Self> {
        let number = |key: &str| line.get(key).map(|value| value.as_f64().unwrap_or(f64::NAN));
        Some(Self {
            step: line["step"].as_u64()?,
            loss: number("loss")?,
            norm: number("norm")?,
            rate: number("rate")?,
            tokens: line["tokens"].as_u64()?,
            validation: number("validation"),
            skipped: line["skipped"].as_str().map(str::to_string),
        })
    }
}

/// The longest line that is read, in bytes. A step takes less than 500.
const LINE_BYTES: u64 = 1 << 16;

/// As [`Record::read_all`], with the end of each record in bytes.
pub fn read(from: impl Read) -> io::Result<(Vec<Record>, Vec<u64>)> {
    let (mut from, mut records, mut ends) = (BufReader::new(from), Vec::<Record>::new(), vec![]);
    let (mut line, mut end) = (vec![], 0);
    loop {
        line.clear();
        end += from.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? as u64;
        let record = serde_json::from_slice(&line).ok().as_ref().and_then(Record::from_json);
        match record.filter(|record| line.ends_with(b"\n") && records.last().is_none_or(|last| last.step < record.step))
        {
            Some(record) => records.push(record),
            None => return Ok((records, ends)),
        }
        ends.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_up_to_the_first_line_that_is_no_step() {
        let records = [
            Record { step: 1, loss: 2.5, norm: 0.1, rate: 1e-4, tokens: 9, ..Record::default() },
            Record { step: 2, validation: Some(0.3), ..Record::default() },
        ];
        let mut text: String = records.iter().map(|record| format!("{}\n", record.to_json())).collect();
        let len = text.len() as u64;
        for more in ["", "{\"step\": 3", "{}\n", "{\"step\":2,\"loss\":1,\"norm\":1,\"rate\":1,\"tokens\":1}\n"] {
            text.truncate(len as usize);
            text.push_str(more);
            let (read, ends) = read(text.as_bytes()).expect("a log");
            assert_eq!((&read[..], ends.last()), (&records[..], Some(&len)), "{more}");
            assert_eq!(Record::read_all(text.as_bytes()).expect("a log"), records, "{more}");
        }
    }

    #[test]
    fn a_step_that_was_skipped_keeps_its_reason() {
        let record =
            Record { step: 1, loss: f64::NAN, skipped: Some("rms_norm in layer 0".to_string()), ..Record::default() };
        let line = record.to_json().to_string();
        assert!(line.contains("\"loss\":null"), "{line}");
        let read = Record::from_json(&serde_json::from_str(&line).expect("JSON")).expect("a record");
        assert!(read.loss.is_nan() && read.skipped == record.skipped, "{read:?}");
    }
}
