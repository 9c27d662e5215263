//! Lines of ids, with the targets and weights of each.

use super::json::short;
use crate::batch::{Document, NO_TARGET};
use serde_json::{Map, Value};

/// The document of a line with these keys. The error is the reason.
pub(super) fn document(object: &Map<String, Value>) -> Result<Document, String> {
    let list = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(_) => Err(format!("{key} is no list")),
    };
    let ids = list("ids")?.ok_or("it has no ids")?;
    let id = |v: &Value| {
        v.as_u64().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| format!("{} is no token id", short(v)))
    };
    let ids: Vec<u32> = ids.iter().map(id).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err("ids is empty".to_string());
    }
    let target = |v: &Value| {
        let target = v.as_i64().ok_or_else(|| format!("{} is no target id", short(v)))?;
        Ok::<_, String>(u32::try_from(target).unwrap_or(NO_TARGET))
    };
    let targets: Vec<u32> = match list("targets")? {
        Some(targets) => targets.iter().map(target).collect::<Result<_, _>>()?,
        None => ids[1..].iter().copied().chain([NO_TARGET]).collect(),
    };
    let weight = |v: &Value| match v.as_f64().map(|w| w as f32) {
        Some(w) if w.is_finite() && w >= 0.0 => Ok(w),
        _ => Err(format!("{} is no weight of 0 or more", short(v))),
    };
    let weights: Vec<f32> = list("weights")?.map_or(Ok(vec![]), |weights| weights.iter().map(weight).collect())?;
    for (what, len) in [("targets", targets.len()), ("weights", weights.len())] {
        if len != ids.len() && (what == "targets" || len > 0) {
            return Err(format!("{} ids, but {len} {what}", ids.len()));
        }
    }
    Ok(Document { ids, targets, weights, ..Document::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Document, String> {
        document(&super::super::json::object(line.as_bytes())?)
    }

    #[test]
    fn a_line_becomes_a_document() {
        let first = read("{\"ids\": [1, 2, 3]}").expect("a document");
        assert_eq!((&first.targets[..], first.weights.len()), (&[2, 3, NO_TARGET][..], 0));
        let second = read("{\"ids\": [4, 5], \"targets\": [-100, 6], \"weights\": [0, 0.5]}").expect("a document");
        assert_eq!((&second.targets[..], &second.weights[..]), (&[NO_TARGET, 6][..], &[0.0, 0.5][..]));
    }

    #[test]
    fn a_bad_line_has_a_reason_without_a_number_of_a_line() {
        for (line, reason) in [
            ("x", "no JSON: expected value at column 1"),
            ("{\"ids\": [1] \"targets\": []}", "no JSON: expected `,` or `}` at column 13"),
            ("[1]", "[1] is no object"),
            ("{}", "it has no ids"),
            ("{\"ids\": []}", "ids is empty"),
            ("{\"ids\": 1}", "ids is no list"),
            ("{\"ids\": [-1]}", "-1 is no token id"),
            ("{\"ids\": [1], \"targets\": [1, 2]}", "1 ids, but 2 targets"),
            ("{\"ids\": [1], \"targets\": [\"a\"]}", "\"a\" is no target id"),
            ("{\"ids\": [1], \"weights\": [1, 2]}", "1 ids, but 2 weights"),
            ("{\"ids\": [1], \"weights\": [-1]}", "-1 is no weight of 0 or more"),
        ] {
            assert_eq!(read(line).map(|_| ()), Err(reason.to_string()), "{line}");
        }
    }
}
