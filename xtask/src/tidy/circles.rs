//! Import circles of every crate. Circles between a few files are allowed, circles between folders
//! are not.

mod imports;
mod modules;
#[cfg(test)]
mod tests;
mod tokens;

use imports::{Imports, imports};
use std::collections::{BTreeMap, BTreeSet};

/// A crate whose imports are counted.
pub struct Counted {
    pub name: &'static str,
    /// The folder of its modules, with a slash at its end.
    pub src: &'static str,
    /// The file of its first module.
    pub root: &'static str,
    /// The number of files that import each other, directly or through other files, in its largest
    /// circle. The number may only become smaller.
    pub circle: usize,
}

/// All crates that have modules.
pub const CRATES: [Counted; 8] = [
    Counted { name: "gguf", src: "crates/gguf/src/", root: "lib.rs", circle: 17 },
    Counted { name: "cpu-ref", src: "crates/cpu-ref/src/", root: "lib.rs", circle: 1 },
    Counted { name: "kernels", src: "crates/kernels/src/", root: "lib.rs", circle: 4 },
    Counted { name: "model", src: "crates/model/src/", root: "lib.rs", circle: 2 },
    Counted { name: "train", src: "crates/train/src/", root: "lib.rs", circle: 1 },
    Counted { name: "cli", src: "crates/cli/src/", root: "main.rs", circle: 2 },
    Counted { name: "web", src: "crates/web/src/", root: "lib.rs", circle: 3 },
    Counted { name: "xtask", src: "xtask/src/", root: "main.rs", circle: 2 },
];

/// Explains the printed numbers.
const COUNTED: &str = "counted: use declarations and paths, re-exports followed, tests left out";

/// The imports between folders: an example, and the number of pairs of files.
type Examples<'a> = BTreeMap<(&'a str, &'a str), (String, usize)>;

/// Describes how the files of a crate import each other, and reports circles that are larger than
/// its limit, and a limit that could be smaller. Paths are relative to the folder of its modules.
pub fn circles(of: &Counted, files: &BTreeMap<&str, &str>, found: &mut Vec<String>) -> String {
    let (krate, limit) = (of.name, of.circle);
    if !files.contains_key(of.root) {
        found.push(format!("{krate}: no {}{}", of.src, of.root));
    }
    let (files, imports) = imports(of.root, files);
    let of_files = components(imports.keys().copied());
    let largest = of_files.first().map_or(1, Vec::len);
    let names = of_files.first().map_or(String::new(), |circle| format!(" ({})", circle.join(", ")));
    if largest > limit {
        found.push(format!("{krate}: {largest} files import each other, at most {limit}:{names}"));
    }
    if largest < limit {
        found.push(format!("{krate}: the limit of files that import each other is {limit}, the largest circle has {largest}; lower the limit"));
    }
    let folders = between_folders(&imports);
    let of_folders = components(folders.keys().copied());
    for circle in &of_folders {
        found.push(format!(
            "{krate}: the folders {} import each other:{}",
            circle.join(", "),
            examples(circle, &folders)
        ));
    }
    let of_folders = match of_folders.len() {
        0 => "no circle".to_string(),
        1 => "1 circle".to_string(),
        n => format!("{n} circles"),
    };
    // The names of a circle that is too large are in its finding.
    let names = if largest > limit { "" } else { &names };
    format!(
        "{krate}: {} files, largest import circle {largest}{names}, {of_folders} between folders; {COUNTED}",
        files.len()
    )
}

/// A finding for every crate of the workspace that has no row in [`CRATES`]. The package at the
/// root only re-exports the others.
pub fn uncounted<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let counted = |path: &str| CRATES.iter().any(|krate| path.strip_prefix(krate.src) == Some(krate.root));
    let root = |path: &str| {
        let inside = path.strip_suffix("/src/lib.rs").or_else(|| path.strip_suffix("/src/main.rs"));
        inside.is_some_and(|folder| !folder.contains("/src/"))
    };
    paths
        .filter(|path| root(path) && !counted(path))
        .map(|path| format!("{path}: its crate is not in the table of import circles"))
        .collect()
}

/// The imports from one folder to another. Files beside the root belong to no folder.
fn between_folders<'a>(imports: &Imports<'a>) -> Examples<'a> {
    let mut folders = Examples::new();
    for ((from, to), path) in imports {
        let (Some((a, _)), Some((b, _))) = (from.split_once('/'), to.split_once('/')) else { continue };
        if a != b {
            folders.entry((a, b)).or_insert_with(|| (format!("{from} -> {to} ({path})"), 0)).1 += 1;
        }
    }
    folders
}

/// One line for every import between the folders of a circle.
fn examples(circle: &[&str], folders: &Examples<'_>) -> String {
    let inside = folders.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
    inside
        .map(|((from, to), (example, count))| format!("\n  {from} -> {to}, {count} in all, such as {example}"))
        .collect()
}

/// The strongly connected components of more than one node, the largest first.
fn components<'a>(edges: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<Vec<&'a str>> {
    let mut next = BTreeMap::<_, Vec<_>>::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<_, _> = next.keys().map(|from| (*from, reach(from, &next))).collect();
    let mut found: Vec<Vec<_>> = vec![];
    for (from, to) in &reached {
        let circle: Vec<_> =
            to.iter().copied().filter(|to| reached.get(to).is_some_and(|back| back.contains(from))).collect();
        if circle.first() == Some(from) && circle.len() > 1 {
            found.push(circle);
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// All nodes that can be reached from one node.
fn reach<'a>(from: &'a str, next: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        open.extend(next.get(node).into_iter().flatten().copied().filter(|to| reached.insert(*to)));
    }
    reached
}
