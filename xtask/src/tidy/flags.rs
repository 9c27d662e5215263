//! Libraries have no command line: no text of theirs names a flag. `crates/cli/src/exit.rs` adds
//! the flags that change what an error names.

use super::files::Files;

const LIBRARIES: [&str; 5] = ["gguf", "cpu-ref", "kernels", "model", "train"];

/// Flags of other programs: (path, a part of the line).
const OTHERS: [(&str, &str); 1] = [("crates/model/src/gpu/adapter/error.rs", "mlx_lm.fuse --dequantize")];

/// Finds flags in the code of the libraries. Comments and tests may name them.
pub fn flags(files: &Files, found: &mut Vec<String>) {
    for (path, text) in files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?))) {
        let is_library = LIBRARIES.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
        if !is_library || !path.ends_with(".rs") || path.ends_with("tests.rs") {
            continue;
        }
        let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (n, line) in (1..).zip(shipped.lines()) {
            let of_another = OTHERS.iter().any(|(of, part)| *of == path && line.contains(part));
            if has_flag(line) && !of_another {
                found.push(format!("{path}:{n}: a library names a flag; crates/cli/src/exit.rs adds it"));
            }
        }
    }
}

/// Whether a line of code has two hyphens before a letter, which only a flag in a text has.
fn has_flag(line: &str) -> bool {
    let begins = |(at, _)| line[at + 2..].starts_with(|c: char| c.is_ascii_lowercase()) && !line[..at].ends_with('-');
    !line.trim_start().starts_with("//") && line.match_indices("--").any(begins)
}

#[cfg(test)]
mod tests {
    use super::flags;
    use crate::tidy::files::Files;

    fn findings(path: &str, text: &str) -> usize {
        let mut found = vec![];
        flags(&Files::from([(path.to_string(), Some(text.to_string()))]), &mut found);
        found.len()
    }

    #[test]
    fn a_flag_in_a_text_of_a_library_is_found() {
        let text = "#[error(\"complete raw text (--raw)\")]\n";
        assert_eq!(findings("crates/model/src/chat/error.rs", text), 1);
        assert_eq!(findings("crates/cli/src/exit.rs", text), 0);
        assert_eq!(findings("crates/model/tests/chat.rs", text), 0);
        assert_eq!(findings("crates/model/src/gpu/adapter/error.rs", "\"mlx_lm.fuse --dequantize\""), 0);
    }

    #[test]
    fn comments_tests_and_rules_of_tables_are_no_flags() {
        let text = "/// As `--raw`.\nlet rule = \"| --- |\";\n#[cfg(test)]\nmod tests {\n\"--raw\"\n}\n";
        assert_eq!(findings("crates/train/src/lib.rs", text), 0);
    }
}
