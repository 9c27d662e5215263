//! Import circles of the kernels crate. Circles between a few files are allowed, circles between
//! folders are not.

mod imports;
mod modules;
#[cfg(test)]
mod tests;
mod tokens;

use imports::{Imports, imports};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of files that may import each other, directly or through other files.
const MAX_CIRCLE: usize = 8;

/// Explains the printed numbers.
const COUNTED: &str = "counted: use declarations and paths, re-exports followed, tests left out";

/// The imports between folders: an example, and the number of pairs of files.
type Examples<'a> = BTreeMap<(&'a str, &'a str), (String, usize)>;

/// Describes how the files of a crate import each other, and reports circles that are too large.
/// Paths are relative to `src`.
pub fn circles(krate: &str, files: &BTreeMap<&str, &str>, found: &mut Vec<String>) -> String {
    let (files, imports) = imports(files);
    let of_files = components(imports.keys().copied());
    let largest = of_files.first().map_or(1, Vec::len);
    let names = of_files.first().map_or(String::new(), |circle| format!(" ({})", circle.join(", ")));
    if largest > MAX_CIRCLE {
        found.push(format!("{krate}: {largest} files import each other, at most {MAX_CIRCLE}:{names}"));
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
    let names = if largest > MAX_CIRCLE { "" } else { &names };
    format!(
        "{krate}: {} files, largest import circle {largest}{names}, {of_folders} between folders; {COUNTED}",
        files.len()
    )
}

/// The imports from one folder to another. Files beside `lib.rs` belong to no folder.
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
