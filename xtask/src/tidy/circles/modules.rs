//! The modules of a crate, and the paths that each module names.

use super::tokens::{is_name, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// A path's names in order. An empty name stands for a name that no module of the crate declares.
pub type Path<'a> = Vec<&'a str>;

/// A module: a file, or a block in a file.
pub struct Module<'a> {
    pub file: &'a str,
    /// The folder of its submodules' files.
    pub folder: String,
    pub parent: usize,
    pub children: BTreeMap<&'a str, usize>,
    /// The imports of `use`: the name in this module and the path.
    pub uses: Vec<(&'a str, Path<'a>)>,
    pub globs: Vec<Path<'a>>,
    pub defined: BTreeSet<&'a str>,
    /// Every path in its code, including the paths of `use`.
    pub paths: Vec<Path<'a>>,
}

/// The modules of a crate, the root first.
pub struct Tree<'a> {
    pub files: &'a BTreeMap<&'a str, &'a str>,
    pub modules: Vec<Module<'a>>,
}

const ITEMS: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];
const TESTS: [&[&str]; 3] = [
    &["#", "[", "cfg", "(", "test", ")", "]"],
    &["#", "[", "cfg", "(", "all", "(", "test", ","],
    &["#", "[", "test", "]"],
];

/// The position of the bracket that closes the one at `at`.
fn closing(tokens: &[&str], at: usize) -> usize {
    let mut depth = 0;
    for (n, token) in tokens.iter().enumerate().skip(at) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return n;
        }
    }
    tokens.len()
}

/// The end of the item, field or statement whose attributes begin at `at`.
fn end_of_item(tokens: &[&str], mut at: usize) -> usize {
    while tokens.get(at) == Some(&"#") {
        at = closing(tokens, at + 1) + 1;
    }
    let mut item = false;
    while let Some(token) = tokens.get(at) {
        match *token {
            "{" => return closing(tokens, at) + 1,
            ";" => return at + 1,
            // A comma ends a field, but not within the generics of an item.
            "," if !item => return at + 1,
            ")" | "]" | "}" => return at,
            "(" | "[" => at = closing(tokens, at),
            word => item |= ITEMS.contains(&word) || ["impl", "mod", "use"].contains(&word),
        }
        at += 1;
    }
    at
}

/// The end of the members of the `impl` block or the trait that begins at `at`.
fn end_of_members(tokens: &[&str], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map_or("", |at| tokens[at]);
    let block = match tokens[at] {
        // Elsewhere `impl` stands in a type.
        "impl" => ["", "{", "}", ";", "]", "unsafe"].contains(&before),
        "trait" => true,
        _ => false,
    };
    let open = at + tokens[at..].iter().position(|token| *token == "{").filter(|_| block)?;
    Some(closing(tokens, open))
}

/// What the file of a family ends with: its list declares the modules.
const FAMILY: &str = "! { family! }";

impl<'a> Tree<'a> {
    /// The modules below the root, without tests.
    pub fn new(root: &str, files: &'a BTreeMap<&'a str, &'a str>) -> Self {
        let mut tree = Self { files, modules: vec![] };
        tree.open(root, String::new(), 0);
        tree
    }

    fn module(&mut self, file: &'a str, folder: String, parent: usize) -> usize {
        let (uses, globs, paths) = (vec![], vec![], vec![]);
        self.modules.push(Module {
            file,
            folder,
            parent,
            children: BTreeMap::new(),
            uses,
            globs,
            defined: BTreeSet::new(),
            paths,
        });
        self.modules.len() - 1
    }

    /// Adds the module of a file, if the file exists, and its submodules.
    fn open(&mut self, path: &str, folder: String, parent: usize) -> Option<usize> {
        let (file, text) = self.files.get_key_value(path)?;
        let module = self.module(file, folder.clone(), parent);
        self.read(module, &tokens(text));
        if text.contains(FAMILY) {
            self.family(module, &folder);
        }
        Some(module)
    }

    /// Adds the files of a family, whose list declares all modules of its folder. Cases are tests.
    fn family(&mut self, module: usize, folder: &str) {
        let beside = |path: &&'a str| path.strip_prefix(folder)?.strip_suffix(".rs").filter(|stem| !stem.contains('/'));
        let stems: Vec<&str> = self.files.keys().filter_map(beside).collect();
        for stem in stems.into_iter().filter(|stem| *stem != "mod" && !stem.ends_with("_case")) {
            let child = self.open(&format!("{folder}{stem}.rs"), format!("{folder}{stem}/"), module);
            self.modules[module].children.extend(child.map(|child| (stem, child)));
        }
    }

    /// Reads `mod name;` or `mod name { .. }` at `at` and returns its end.
    fn child(&mut self, module: usize, tokens: &[&'a str], at: usize) -> usize {
        let (name, end) = (tokens[at + 1], closing(tokens, at + 2));
        let folder = format!("{}{name}/", self.modules[module].folder);
        let child = if tokens[at + 2] == "{" {
            let child = self.module(self.modules[module].file, folder, module);
            self.read(child, &tokens[at + 3..end]);
            Some(child)
        } else if name == "tests" {
            None
        } else {
            let inside = format!("{folder}mod.rs");
            let beside = format!("{}.rs", folder.trim_end_matches('/'));
            let path = if self.files.contains_key(inside.as_str()) { inside } else { beside };
            self.open(&path, folder, module)
        };
        self.modules[module].children.extend(child.map(|child| (name, child)));
        end + 1
    }

    fn read(&mut self, module: usize, tokens: &[&'a str]) {
        let (mut at, mut members) = (0, 0);
        while at < tokens.len() {
            if let Some(end) = end_of_members(tokens, at) {
                members = members.max(end);
            }
            let next = |n: usize| tokens.get(at + n).copied().unwrap_or_default();
            at = match tokens[at] {
                "#" if TESTS.iter().any(|test| tokens[at..].starts_with(test)) => end_of_item(tokens, at),
                "mod" if is_name(next(1)) && [";", "{"].contains(&next(2)) => self.child(module, tokens, at),
                // `use<..>` lists the captures of a type; it is no import.
                "use" if next(1) != "<" => self.import(module, tokens, at + 1, &[]),
                word if ITEMS.contains(&word) => {
                    // A function of a type or of a trait is no item of the module.
                    if at >= members || word == "trait" {
                        self.modules[module].defined.insert(next(if word == "macro_rules" { 2 } else { 1 }));
                    }
                    at + 1
                }
                word if is_name(word) && next(1) == "::" => self.path(module, tokens, at),
                _ => at + 1,
            };
        }
    }

    /// Reads a path in code, without the name of a macro, and returns its end.
    fn path(&mut self, module: usize, tokens: &[&'a str], mut at: usize) -> usize {
        // A name after `>::` belongs to a type, and `$name` belongs to the caller of a macro.
        let before = at.checked_sub(1).map(|at| tokens[at]);
        let own = before != Some("::") && (before != Some("$") || tokens[at] == "crate");
        let mut path = vec![tokens[at]];
        while let [_, "::", name, ..] = &tokens[at..]
            && is_name(name)
        {
            path.push(name);
            at += 2;
        }
        if tokens.get(at + 1) == Some(&"!") && tokens.get(at + 2) != Some(&"=") {
            path.pop();
        }
        if own && path.len() > 1 {
            self.modules[module].paths.push(path);
        }
        at + 1
    }

    /// Reads a tree of imports below `prefix` and returns its end.
    fn import(&mut self, module: usize, tokens: &[&'a str], mut at: usize, prefix: &[&'a str]) -> usize {
        let mut path = prefix.to_vec();
        let mut alias = None;
        while let Some(token) = tokens.get(at) {
            match *token {
                "{" => {
                    let end = closing(tokens, at);
                    while at < end {
                        at = self.import(module, tokens, at + 1, &path);
                    }
                    return end + 1;
                }
                "*" => {
                    self.modules[module].paths.push(path.clone());
                    self.modules[module].globs.push(path);
                    return at + 1;
                }
                "as" => {
                    alias = tokens.get(at + 1).copied();
                    at += 1;
                }
                "self" if !path.is_empty() => {}
                "::" if path.is_empty() => path.push(""),
                "$" if tokens.get(at + 1) != Some(&"crate") => path.push(""),
                "::" | "$" => {}
                name if is_name(name) => path.push(name),
                _ => break,
            }
            at += 1;
        }
        let itself = alias.is_some() || tokens[at - 1] == "self";
        if let Some(name) = path.last().filter(|_| path.len() > prefix.len() || itself) {
            self.modules[module].uses.push((alias.unwrap_or(name), path.clone()));
            self.modules[module].paths.push(path);
        }
        at
    }
}
