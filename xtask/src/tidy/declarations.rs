//! The number of kernels that each family declares.

use crate::tidy::files::Files;

/// The largest number of declarations of each family. A faster kernel replaces a slower one, or is
/// a variant of it. So a number rises only with a new operation.
const MOST: [(&str, usize); 7] = [
    ("elementwise", 24),
    ("sampling", 5),
    ("norm", 30),
    ("matmul", 36),
    ("attention", 26),
    ("experts", 17),
    ("training", 7),
];

/// Families with more declarations than their limit, and limits that are too large.
pub fn check(files: &Files, found: &mut Vec<String>) {
    for (family, most) in MOST {
        let folder = format!("crates/kernels/src/{family}/");
        let of_family = files.iter().filter(|(path, _)| path.starts_with(&folder));
        let declared: usize =
            of_family.filter_map(|(_, text)| text.as_deref()).map(|text| text.matches("\nkernel! {\n").count()).sum();
        // Without the folder there is nothing to count.
        if declared != most && files.keys().any(|path| path.starts_with(&folder)) {
            found.push(format!("{folder}: declares {declared} kernels, the limit is {most}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_and_fewer_declarations_than_the_limit() {
        let of = |count: usize| {
            let text = format!("//! A.\n{}", "\nkernel! {\n}\n".repeat(count));
            let (mut files, mut found) = (Files::new(), vec![]);
            files.insert("crates/kernels/src/sampling/a.rs".into(), Some(text));
            check(&files, &mut found);
            found.len()
        };
        assert_eq!([of(4), of(5), of(6)], [1, 0, 1]);
    }
}
