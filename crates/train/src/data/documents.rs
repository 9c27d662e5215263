//! Reads documents from lines of ids.

use super::ids::{KEYS, document};
use super::json::{object, only};
use super::lines::{Bounded, read_line, too_long};
use crate::batch::Document;
use crate::error::Error;
use std::io::BufRead;

/// Reads up to `count` documents from JSON lines, and leaves the rest unread. A line is an object
/// with `ids`, and optionally `targets` and `weights` of the same length. Without `targets` each
/// target is the following id; the last id has none. A target below zero (-100 by custom) or
/// outside the vocabulary asks for no loss. Empty lines are skipped. `name` is the file in errors.
///
/// # Errors
/// [`Error::Data`] with the file, the line and the reason; [`Error::Read`].
pub fn read_documents(name: &str, from: &mut dyn BufRead, count: usize) -> Result<Vec<Document>, Error> {
    let (mut documents, mut line, mut number) = (vec![], vec![], 0);
    while documents.len() < count {
        line.clear();
        number += 1;
        let (read, bounded) = read_line(from, &mut line)
            .map_err(|error| Error::Read { file: name.to_string(), reason: error.to_string() })?;
        if read == 0 {
            break;
        }
        if !line.trim_ascii().is_empty() {
            let refused = |reason| Error::Data { file: name.to_string(), line: number, reason };
            let object = if bounded == Bounded::Whole { object(&line) } else { Err(too_long()) };
            let read = object.and_then(|object| only(&object, &KEYS).and_then(|()| document(&object)));
            documents.push(read.map_err(refused)?);
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::NO_TARGET;

    fn read(text: &str) -> Result<Vec<Document>, String> {
        read_documents("facts.jsonl", &mut text.as_bytes(), 2).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_become_documents() {
        let text = "{\"ids\": [1, 2, 3]}\n\n{\"ids\": [4, 5], \"targets\": [-100, 6], \"weights\": [0, 0.5]}\nnot read";
        let [first, second] = &read(text).expect("two documents")[..] else { panic!("two documents") };
        assert_eq!(
            (&first.ids[..], &first.targets[..], first.weights.len()),
            (&[1, 2, 3][..], &[2, 3, NO_TARGET][..], 0)
        );
        assert_eq!((&second.targets[..], &second.weights[..]), (&[NO_TARGET, 6][..], &[0.0, 0.5][..]));
        assert_eq!(read("").map(|all| all.len()), Ok(0));
    }

    #[test]
    fn a_bad_line_is_named_with_its_reason() {
        for (line, reason) in [
            ("x", "facts.jsonl, line 2: no JSON: expected value at line 1 column 1"),
            ("[1]", "facts.jsonl, line 2: [1] is no object"),
            ("{}", "facts.jsonl, line 2: it has no ids"),
            ("{\"ids\": []}", "facts.jsonl, line 2: ids is empty"),
            ("{\"ids\": 1}", "facts.jsonl, line 2: ids is no list"),
            ("{\"ids\": [-1]}", "facts.jsonl, line 2: -1 is no token id"),
            ("{\"ids\": [1], \"targets\": [1, 2]}", "facts.jsonl, line 2: 1 ids, but 2 targets"),
            ("{\"ids\": [1], \"targets\": [\"a\"]}", "facts.jsonl, line 2: \"a\" is no target id"),
            ("{\"ids\": [1], \"weights\": [1, 2]}", "facts.jsonl, line 2: 1 ids, but 2 weights"),
            ("{\"ids\": [1], \"weights\": [-1]}", "facts.jsonl, line 2: -1 is no weight of 0 or more"),
            ("{\"ids\": [1], \"label\": 1}", "facts.jsonl, line 2: the key \"label\" is none of ids, targets, weights"),
        ] {
            assert_eq!(read(&format!("{{\"ids\": [7]}}\n{line}\n")), Err(reason.to_string()));
        }
    }
}
