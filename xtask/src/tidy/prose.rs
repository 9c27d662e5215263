//! The width of comments, errors and Markdown: prose has shorter lines than code. And the place of
//! measured speeds, which is not the list of changes.

use super::files::Files;

/// Columns of a line of prose. Code has rustfmt's `max_width`.
const MAX_PROSE: usize = 100;

/// Markdown that `xtask` writes.
const GENERATED: [&str; 2] = ["docs/contracts.md", "docs/kernels.md"];

/// Finds lines of prose that are too long.
pub fn prose(files: &Files, found: &mut Vec<String>) {
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?))) {
        let is_prose: fn(&str) -> bool = match path.rsplit('.').next() {
            Some("rs" | "wgsl") => in_code,
            Some("md") if !GENERATED.contains(&path) => in_markdown,
            _ => continue,
        };
        let mut fenced = false;
        for (n, line) in (1..).zip(text.lines()) {
            let inside = line.trim_start_matches(['/', '!', ' ']);
            if inside.starts_with("```") {
                fenced = !fenced;
            }
            if path == "CHANGELOG.md" && line.contains("tok/s") {
                found.push(format!("{path}:{n}: a measured speed; benches/RESULTS.md has them"));
            }
            let columns = line.chars().count();
            // A table's row and an address cannot be broken.
            if columns > MAX_PROSE && !fenced && is_prose(line) && !inside.starts_with('|') && !line.contains("://") {
                found.push(format!("{path}:{n}: {columns} columns of prose, at most {MAX_PROSE}"));
            }
        }
    }
}

/// A line that is a comment, except a mutation's tag, or an error's text.
fn in_code(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("//") && !line.starts_with("//~")) || line.starts_with("#[error(")
}

fn in_markdown(_: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::prose;
    use std::collections::BTreeMap;

    fn findings(path: &str, text: &str) -> usize {
        let mut found = vec![];
        prose(&BTreeMap::from([(path.to_string(), Some(text.to_string()))]), &mut found);
        found.len()
    }

    #[test]
    fn long_comments_and_errors_are_found_and_code_is_not() {
        let long = "word ".repeat(20);
        assert_eq!(findings("a.rs", &format!("    /// {long}end\n")), 1);
        assert_eq!(findings("a.wgsl", &format!("// {long}end\n")), 1);
        assert_eq!(findings("a.rs", &format!("    #[error(\"{long}\")]\n")), 1);
        assert_eq!(findings("a.rs", &format!("    let a = \"{long}\"; // as a string\n")), 0);
        assert_eq!(findings("a.rs", &format!("//~ {long}end\n")), 0);
    }

    #[test]
    fn a_speed_in_the_list_of_changes_is_found() {
        assert_eq!(findings("CHANGELOG.md", "* Prompts are read at 14,941 tok/s.\n"), 1);
        assert_eq!(findings("benches/RESULTS.md", "* Prompts are read at 14,941 tok/s.\n"), 0);
    }

    #[test]
    fn tables_fences_addresses_and_generated_files_may_be_wide() {
        let long = "word ".repeat(21);
        assert_eq!(findings("a.md", &long), 1);
        assert_eq!(findings("a.md", &format!("| {long} |\n```sh\n{long}\n```\n<https://example.org/{long}>\n")), 0);
        assert_eq!(findings("docs/kernels.md", &long), 0);
    }
}
