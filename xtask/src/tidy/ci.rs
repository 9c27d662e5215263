//! The run of everything, `.ci/run`: the minutes of its parts, and README's command for the tests.

use super::files::Files;

const RUN: &str = ".ci/run";

/// The minutes of all parts, on two cores that do nothing else.
const MINUTES: u32 = 45;

/// The command for the tests, in README and in the run.
const TESTS: &str = "cargo test --workspace";

/// Finds parts that have more than [`MINUTES`] together, a part without a number, and tests that
/// are not run as README says.
pub fn ci(files: &Files, found: &mut Vec<String>) {
    let text = |path: &str| files.get(path).and_then(Option::as_deref).unwrap_or_default();
    let run = text(RUN);
    let parts: Vec<&str> = run.lines().filter_map(|line| line.strip_prefix("part ")).collect();
    let minutes = |part: &&str| part.rsplit(' ').next().and_then(|number| number.parse::<u32>().ok());
    if let Some(without) = parts.iter().find(|part| minutes(part).is_none()) {
        found.push(format!("{RUN}: the part {without} has no minutes"));
    }
    let all: u32 = parts.iter().filter_map(minutes).sum();
    if all != MINUTES {
        found.push(format!(
            "{RUN}: the parts have {all} minutes together, not {MINUTES}: what one gains, another loses"
        ));
    }
    if !run.lines().any(|line| line.strip_prefix("step ") == Some(TESTS)) {
        found.push(format!("{RUN}: no step is `{TESTS}`, word for word"));
    }
    if !text("README.md").lines().any(|line| line.split('#').next().is_some_and(|command| command.trim_end() == TESTS))
    {
        found.push(format!("README.md: no line is `{TESTS}`"));
    }
}
