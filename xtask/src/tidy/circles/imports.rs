//! The imports between the files of a crate. Every path is followed to the file that defines its
//! item.

use super::modules::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// (The file that names an item, the file that defines it), with the first such path as written.
pub type Imports<'a> = BTreeMap<(&'a str, &'a str), String>;

/// The target of a path.
#[derive(Copy, Clone)]
enum Place {
    Module(usize),
    /// An item of a module.
    Item(usize),
}

/// The imports that are being followed, to stop at imports that lead back to themselves.
type Followed = Vec<(usize, usize)>;

/// The files of all modules below the root, without tests, and their imports from one another.
/// Paths are relative to the folder of the root.
pub fn imports<'a>(root: &str, files: &'a BTreeMap<&'a str, &'a str>) -> (BTreeSet<&'a str>, Imports<'a>) {
    let tree = Tree::new(root, files);
    let mut found = Imports::new();
    for (n, module) in tree.modules.iter().enumerate() {
        for path in &module.paths {
            for Place::Module(to) | Place::Item(to) in tree.resolve(n, path, &mut vec![]) {
                let to = tree.modules[to].file;
                if to != module.file {
                    found.entry((module.file, to)).or_insert_with(|| path.join("::"));
                }
            }
        }
    }
    (tree.modules.iter().map(|module| module.file).collect(), found)
}

impl Tree<'_> {
    /// The targets of a path in a module. There is no target if the path leads out of the crate,
    /// and several if a module and an item have the same name.
    fn resolve(&self, from: usize, path: &[&str], followed: &mut Followed) -> Vec<Place> {
        let supers = path.iter().skip_while(|name| **name == "self").take_while(|name| **name == "super").count();
        let up = (0..supers).fold(from, |module, _| self.modules[module].parent);
        let rest = path.iter().position(|name| !["self", "super"].contains(name)).unwrap_or(path.len());
        match path.first() {
            Some(&"crate") => self.within(0, &path[1..], followed),
            Some(&("self" | "super")) => self.within(up, &path[rest..], followed),
            Some(name) => self.onward(&self.lookup(from, name, followed), &path[1..], followed),
            None => vec![],
        }
    }

    /// The targets of the rest of a path within a module. A name that the module does not show was
    /// made there by a macro.
    fn within(&self, module: usize, path: &[&str], followed: &mut Followed) -> Vec<Place> {
        let Some(name) = path.first() else { return vec![Place::Module(module)] };
        let places = self.lookup(module, name, followed);
        if places.is_empty() { vec![Place::Item(module)] } else { self.onward(&places, &path[1..], followed) }
    }

    /// The targets of the rest of a path, from the possible targets of its beginning. Only modules
    /// have items that the rest can name.
    fn onward(&self, places: &[Place], path: &[&str], followed: &mut Followed) -> Vec<Place> {
        let modules: Vec<_> =
            places.iter().filter_map(|place| if let Place::Module(n) = place { Some(*n) } else { None }).collect();
        if path.is_empty() || modules.is_empty() {
            return places.to_vec();
        }
        modules.into_iter().flat_map(|module| self.within(module, path, followed)).collect()
    }

    /// The targets of a name in a module: a submodule, an import, an own item, or else an item from
    /// its globs.
    fn lookup(&self, module: usize, name: &str, followed: &mut Followed) -> Vec<Place> {
        let here = &self.modules[module];
        let mut found: Vec<_> = here.children.get(name).map(|child| Place::Module(*child)).into_iter().collect();
        for (n, (_, path)) in here.uses.iter().enumerate().filter(|(_, (import, _))| *import == name) {
            found.extend(self.follow((module, n), followed, |followed| self.resolve(module, path, followed)));
        }
        if here.defined.contains(name) {
            found.push(Place::Item(module));
        }
        for (n, path) in here.globs.iter().enumerate().filter(|_| found.is_empty()).collect::<Vec<_>>() {
            found.extend(self.follow((module, here.uses.len() + n), followed, |followed| {
                let globbed = self.resolve(module, path, followed);
                let within = |place| if let Place::Module(n) = place { self.lookup(n, name, followed) } else { vec![] };
                globbed.into_iter().flat_map(within).collect()
            }));
        }
        found
    }

    fn follow(
        &self,
        import: (usize, usize),
        followed: &mut Followed,
        lead: impl FnOnce(&mut Followed) -> Vec<Place>,
    ) -> Vec<Place> {
        if followed.contains(&import) {
            return vec![];
        }
        followed.push(import);
        let found = lead(followed);
        followed.pop();
        found
    }
}
