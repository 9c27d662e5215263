//! The second table of docs/contracts.md: promises of other projects, and what holds each in ours.

mod listed;

use std::fmt::Write as _;

const HEAD: &str = "
# Promises of other projects

Two other projects compute forward and backward of transformers with WGSL: `trueno` (T) and `rullama`
(R). The table has each promise that they make about it, under their name, and what holds it here, no
looser. Errors are the largest absolute ones unless the text says otherwise.

`cargo xtask contracts` writes the table from `xtask/src/contracts/promises/listed.rs`. It fails if a
promise has nothing that holds it, if a test is not there, and if `benches/RESULTS.md` does not have
the command or the line of a measurement.
";

/// What another project promises.
struct Promise {
    /// The project and its name for the promise.
    name: &'static str,
    /// The promise with its bound, and what its own tests leave out.
    says: &'static str,
    held: &'static [Proof],
}

/// A test, as a file and a function.
type Test = (&'static str, &'static str);

/// What holds a promise.
enum Proof {
    Test(Test),
    /// A measurement of time: what it shows, a command, and the line of it in benches/RESULTS.md.
    Bench {
        shows: &'static str,
        command: &'static str,
        line: &'static str,
    },
    /// A command on a card, and its line in benches/RESULTS.md.
    Card {
        command: &'static str,
        line: &'static str,
    },
    /// The reason why we do otherwise, and the test of what we do.
    Rejected {
        reason: &'static str,
        test: Test,
    },
}

/// The table.
///
/// # Errors
/// Everything that is missing.
pub fn table(read: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<String> {
    render(listed::PROMISES, read)
}

fn render(promises: &[Promise], read: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<String> {
    let missing: Vec<_> = promises.iter().flat_map(|promise| missing(promise, &read)).collect();
    anyhow::ensure!(missing.is_empty(), "promises without what holds them:\n{}", missing.join("\n"));
    let mut text = format!("{HEAD}\n| promise | what it says | what holds it |\n| --- | --- | --- |\n");
    for Promise { name, says, held } in promises {
        let held: Vec<_> = held.iter().map(Proof::to_string).collect();
        writeln!(text, "| {name} | {says} | {} |", held.join("; "))?;
    }
    Ok(text)
}

/// What a promise lacks.
fn missing(promise: &Promise, read: &impl Fn(&str) -> anyhow::Result<String>) -> Vec<String> {
    let text = |path: &str| read(path).unwrap_or_default();
    let recorded = |part: &str| !part.is_empty() && spaced(&text("benches/RESULTS.md")).contains(&spaced(part));
    let lacks = |proof: &Proof| match proof {
        Proof::Test((file, function)) | Proof::Rejected { test: (file, function), reason: _ }
            if !has_test(&text(file), function) =>
        {
            Some(format!("no test {function} in {file}"))
        }
        Proof::Rejected { reason: "", .. } => Some("no reason".to_string()),
        Proof::Bench { command, line, .. } | Proof::Card { command, line } => [*command, *line]
            .into_iter()
            .find(|part| !recorded(part))
            .map(|part| format!("benches/RESULTS.md does not have `{part}`")),
        Proof::Test(_) | Proof::Rejected { .. } => None,
    };
    let mut found: Vec<_> = promise.held.iter().filter_map(lacks).collect();
    if promise.held.is_empty() {
        found.push("nothing holds it".to_string());
    }
    found.iter().map(|what| format!("{}: {what}", promise.name)).collect()
}

/// The words of a text with one space between them: a sentence may go over lines.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a file has a test function of this name.
fn has_test(text: &str, function: &str) -> bool {
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if is_test
            && line
                .strip_prefix("fn ")
                .and_then(|rest| rest.strip_prefix(function))
                .is_some_and(|rest| rest.starts_with("()"))
        {
            return true;
        }
        is_test = line == "#[test]";
    }
    false
}

/// Escapes what would end a cell.
fn cell(line: &str) -> String {
    line.replace('|', "\\|")
}

impl std::fmt::Display for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Test((file, function)) => write!(f, "`{function}` ({file})"),
            Self::Bench { shows, command, line } => write!(f, "{shows}: `{command}`, RESULTS \"{}\"", cell(line)),
            Self::Card { command, line } => write!(f, "on a card `{command}`, RESULTS \"{}\"", cell(line)),
            Self::Rejected { reason, test: (file, function) } => write!(f, "rejected: {reason}; `{function}` ({file})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of a file with one test and of results over two lines.
    fn read(path: &str) -> anyhow::Result<String> {
        match path {
            "a.rs" => Ok("mod tests {\n    #[test]\n    fn holds() {}\n\n    fn helper() {}\n}\n".to_string()),
            "benches/RESULTS.md" => {
                Ok("`weft bench -p 5`:\n\n| rows | 12 |\n\nNo kernel was\nbeyond its bound.\n".to_string())
            }
            _ => anyhow::bail!("no {path}"),
        }
    }

    fn of(held: &'static [Proof]) -> Result<String, String> {
        render(&[Promise { name: "T promise", says: "a bound", held }], read).map_err(|error| error.to_string())
    }

    #[test]
    fn tests_lines_and_reasons_that_are_there_hold_a_promise() {
        let text = of(&[
            Proof::Test(("a.rs", "holds")),
            Proof::Bench { shows: "a rate", command: "weft bench -p 5", line: "| rows | 12 |" },
            Proof::Card { command: "weft bench -p 5", line: "No kernel was beyond its bound." },
            Proof::Rejected { reason: "it is wrong", test: ("a.rs", "holds") },
        ]);
        let text = text.unwrap();
        assert!(
            text.contains(
                "| T promise | a bound | `holds` (a.rs); a rate: `weft bench -p 5`, RESULTS \"\\| rows \\| 12 \\|\";"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_promise_that_nothing_holds_fails() {
        assert!(of(&[]).unwrap_err().contains("T promise: nothing holds it"));
    }

    #[test]
    fn a_function_that_is_missing_or_no_test_fails() {
        for missing in [("a.rs", "hold"), ("a.rs", "holds_more"), ("a.rs", "helper"), ("b.rs", "holds")] {
            let [test, rejected] =
                [Proof::Test(missing), Proof::Rejected { reason: "it is wrong", test: missing }].map(|proof| [proof]);
            for held in [test, rejected] {
                let promise = Promise { name: "T promise", says: "a bound", held: Box::leak(Box::new(held)) };
                let error = render(&[promise], read).unwrap_err().to_string();
                assert!(error.contains(&format!("no test {} in {}", missing.1, missing.0)), "{error}");
            }
        }
        assert!(of(&[Proof::Rejected { reason: "", test: ("a.rs", "holds") }]).unwrap_err().contains("no reason"));
    }

    #[test]
    fn a_command_or_a_line_that_the_results_do_not_have_fails() {
        let error =
            of(&[Proof::Bench { shows: "a rate", command: "weft bench -p 6", line: "| rows | 12 |" }]).unwrap_err();
        assert!(error.contains("does not have `weft bench -p 6`"), "{error}");
        let error = of(&[Proof::Card { command: "weft bench -p 5", line: "| rows | 13 |" }]).unwrap_err();
        assert!(error.contains("does not have `| rows | 13 |`"), "{error}");
        let error = of(&[Proof::Bench { shows: "a rate", command: "weft bench -p 5", line: "" }]).unwrap_err();
        assert!(error.contains("does not have ``"), "{error}");
    }
}
