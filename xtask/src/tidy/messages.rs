//! Messages have no debug print: `{:?}` shows names and brackets of Rust, not words of the user.

use super::files::Files;

/// Macros whose text no user sees: a wrong use of the library, or a defect of ours.
const INTERNAL: [&str; 8] =
    ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "panic", "unreachable"];

/// Debug prints that are in no message: (path, a part of the line, reason).
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/gguf/src/value.rs", "write!(f, \"{v:?}\")", "a float of metadata with its point: 1.0"),
    (
        "crates/gguf/src/build.rs",
        "format!(\"{other:?}\")",
        "a value of the program that calls the builder, with its type",
    ),
    ("crates/kernels/src/kernel/compose.rs", "format!(\"{:?}f\"", "a constant of WGSL: 1.0f"),
    ("crates/kernels/src/kernel/random.rs", "notes.push", "a case of a test"),
    ("crates/kernels/src/native/tune/probe.rs", "placed.shader.label()", "compares two lists of shaders"),
    ("crates/kernels/src/device/mod.rs", "self.0.limits", "a key of the cache of pipelines"),
    ("crates/kernels/src/testing/", "", "for tests"),
    ("crates/model/src/chat/python.rs", "format!(\"{value:?}\").to_lowercase()", "a float as Python prints it"),
    ("crates/model/src/chat/python.rs", "write!(out, \"{value:?}\")", "a value of a template as Python prints it"),
    ("crates/train/src/checkpoint/facts.rs", "", "words that checkpoints of version 1 hold"),
    ("crates/train/src/data/files.rs", "format!(\"length {length}", "words that checkpoints hold"),
    ("crates/train/src/data/texts.rs", "Sha256::digest(format!", "is hashed"),
];

/// Finds debug prints in the code of the crates that users run.
pub fn messages(files: &Files, found: &mut Vec<String>) {
    let mut used = vec![false; EXCEPTIONS.len()];
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?))) {
        if !path.starts_with("crates/")
            || !path.contains("/src/")
            || !path.ends_with(".rs")
            || path.ends_with("tests.rs")
        {
            continue;
        }
        let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (at, _) in debug_prints(shipped) {
            let line = shipped[..at].lines().count();
            let code = shipped.lines().nth(line - 1).unwrap_or_default();
            let is_listed = |(of, part, _): &(&str, &str, &str)| path.starts_with(of) && code.contains(part);
            match EXCEPTIONS.iter().position(is_listed) {
                Some(n) => used[n] = true,
                None => found.push(format!(
                    "{path}:{line}: a debug print in a message; print words, or `escape_debug` in quotes"
                )),
            }
        }
    }
    for ((path, part, _), _) in EXCEPTIONS.iter().zip(used).filter(|(_, used)| !used) {
        found.push(format!("{path}: has no debug print {part:?} any more; take it off the list"));
    }
}

/// The byte offsets of debug prints, and the macros that they are in, without internal ones.
fn debug_prints(text: &str) -> Vec<(usize, &str)> {
    let places = text.match_indices(":?}").chain(text.match_indices(":#?}")).map(|(at, _)| at);
    let outside =
        |at: &usize| !text[text[..*at].rfind('\n').map_or(0, |end| end + 1)..*at].trim_start().starts_with("//");
    places
        .filter(outside)
        .map(|at| (at, macro_around(&text[..at])))
        .filter(|(_, name)| !INTERNAL.contains(name))
        .collect()
}

/// The name of the innermost macro or attribute whose parenthesis is still open at the end. Code in
/// strings is not told apart: parentheses in messages come in pairs.
fn macro_around(before: &str) -> &str {
    let mut depth = 0;
    for (at, c) in before.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth > 0 => depth -= 1,
            '(' => {
                let head = &before[..at];
                let name = head.strip_suffix('!').unwrap_or(head);
                let start = name.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
                if head.ends_with('!') || name[..start].ends_with("#[") {
                    return &name[start..];
                }
            }
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::{debug_prints, messages};
    use crate::tidy::files::Files;

    fn names(text: &str) -> Vec<&str> {
        debug_prints(text).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn a_debug_print_of_a_message_is_found_and_that_of_an_assertion_is_not() {
        assert_eq!(names("#[error(\"the shape {found:?}\")]"), ["error"]);
        assert_eq!(names("bail!(\n    \"{} and {:?}\",\n    f(a, b),\n)"), ["bail"]);
        assert_eq!(names("let x = format!(\"{x:#?}\");"), ["format"]);
        assert_eq!(names("assert!(x.len() > g(y), \"{x:?} (see {y:?})\");"), [""; 0]);
        assert_eq!(names("    // a comment about {x:?}"), [""; 0]);
    }

    #[test]
    fn no_message_of_the_crates_has_a_debug_print() {
        let (files, mut found) = (crate::tidy::files::files().expect("git"), vec![]);
        messages(&files, &mut found);
        assert_eq!(found, [""; 0]);
        let of = |path: &str| Files::from([(path.to_string(), Some("bail!(\"{x:?}\")".to_string()))]);
        messages(&of("crates/cli/src/new.rs"), &mut found);
        assert!(found.iter().any(|finding| finding.starts_with("crates/cli/src/new.rs:1: a debug print")), "{found:?}");
    }
}
