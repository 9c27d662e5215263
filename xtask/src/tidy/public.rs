//! Counts the public items of the kernels crate. Items that only tests, benches and `xtask` use are
//! public in `testing` alone.

use super::files::Files;

const ROOT: &str = "crates/kernels/src/";

/// The largest number of public items without the feature `testing`. Macros hid two of them once.
const MOST: usize = 172;

const ITEMS: [&str; 9] = ["fn", "async", "unsafe", "struct", "enum", "trait", "type", "const", "static"];

/// Counts modules, re-exported names, and items of public modules. Fields, methods and variants
/// belong to an item and are not counted.
pub fn public(files: &Files, found: &mut Vec<String>) -> String {
    let count = of_file(files, "lib.rs", "");
    if count > MOST {
        found.push(format!(
            "kernels: {count} public items, at most {MOST}; make modules private, or public in testing alone"
        ));
    }
    format!("kernels: {count} public items without the feature testing")
}

/// The public items of a file and of the public modules below it. Submodules are in `folder`.
fn of_file(files: &Files, file: &str, folder: &str) -> usize {
    let Some(text) = files.get(&format!("{ROOT}{file}")).and_then(Option::as_deref) else { return 0 };
    let mut count = 0;
    for (before, line) in text.match_indices("\npub ").map(|(at, mark)| (&text[..at], &text[at + mark.len()..])) {
        if before.ends_with("#[cfg(feature = \"testing\")]") {
            continue;
        }
        count += match line.split_whitespace().next() {
            Some("mod") => 1 + module(files, folder, line[4..].split([';', ' ']).next().unwrap_or_default()),
            Some("use") => used(files, folder, line[4..].split(';').next().unwrap_or_default()),
            Some(word) if ITEMS.contains(&word) => 1,
            _ => 0,
        };
    }
    count
}

/// The items of a module that is a file.
fn module(files: &Files, folder: &str, name: &str) -> usize {
    let inside = format!("{folder}{name}/");
    [format!("{folder}{name}.rs"), format!("{inside}mod.rs")].iter().map(|file| of_file(files, file, &inside)).sum()
}

/// The names that a section of a family's list makes public: the function of each row, and what the
/// braces of the row hold.
fn listed(files: &Files, family: &str, section: &str) -> usize {
    let Some(list) = files.get(&format!("{ROOT}{family}/mod.rs")).and_then(Option::as_deref) else { return 0 };
    let section = list.split(&format!("\n            {section} {{\n")).nth(1).unwrap_or_default();
    let section = section.split("\n            }").next().unwrap_or_default();
    let braces = |row: &str| {
        row.split_once('{').map_or(0, |(_, names)| names.split('}').next().unwrap_or_default().split(',').count())
    };
    section.lines().filter(|line| line.contains(": ")).map(|row| 1 + braces(row)).sum()
}

/// The names of a `pub use`, with the items of those that are modules.
fn used(files: &Files, folder: &str, path: &str) -> usize {
    match path.strip_prefix("crate::").map(|path| path.split("::").collect::<Vec<_>>()).as_deref() {
        Some([family, "recorded", "*"]) => return listed(files, family, "operations"),
        Some([family, "derivatives", "*"]) => return listed(files, family, "derivatives"),
        _ => {}
    }
    let (path, names) = path.rsplit_once("::").unwrap_or(("", path));
    let names = names.trim_matches(['{', '}', ' ', '\n']).split(',').map(str::trim).filter(|name| !name.is_empty());
    let of = match path.strip_prefix("crate::").unwrap_or(path) {
        "" | "crate" => folder.to_string(),
        path => format!("{folder}{}/", path.replace("::", "/")),
    };
    names.map(|name| 1 + module(files, &of, name)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(files: &[(&str, &str)]) -> usize {
        let files = files.iter().map(|(path, text)| (format!("{ROOT}{path}"), Some((*text).to_string()))).collect();
        of_file(&files, "lib.rs", "")
    }

    #[test]
    fn items_of_public_modules_count() {
        let inner = ("a/mod.rs", "//! A.\n\npub mod b;\nmod c;\n\npub fn f() {}\nfn g() {}\npub(crate) struct S;\n");
        let lower = [
            ("a/b.rs", "//! B.\n\npub struct T {\n    pub field: u32,\n}\n"),
            ("a/c.rs", "//! C.\n\npub const N: u32 = 1;\n"),
        ];
        let all = |lib| count(&[("lib.rs", lib), inner, lower[0], lower[1]]);
        assert_eq!(all("//! L.\n\nmod a;\n"), 0);
        assert_eq!(all("//! L.\n\npub mod a;\n"), 4);
        assert_eq!(all("//! L.\n\nmod a;\n\npub use a::c::N;\npub use a::{\n    f,\n    b,\n};\n"), 4);
        assert_eq!(all("//! L.\n\n#[cfg(feature = \"testing\")]\npub mod a;\n"), 0);
    }

    #[test]
    fn too_many_are_a_finding() {
        let lib = format!("//! L.\n\n{}", "pub fn f() {}\n".repeat(MOST + 1));
        let files = [(format!("{ROOT}lib.rs"), Some(lib))].into_iter().collect();
        let mut found = vec![];
        public(&files, &mut found);
        assert_eq!(found.len(), 1);
    }
}
