//! The model stores on this machine, or those that a host gives.

use super::name::MANIFESTS;
use super::{Entry, Name, OllamaError};
use gguf::{Directory, FileDirectory, Item};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Upper limits: of names in a list, and of names in an error.
const MAX_NAMES: usize = 10_000;
const NEAR: usize = 5;

/// Folders in which Ollama may keep models, in order of search.
#[derive(Clone, Default)]
pub struct Stores {
    roots: Vec<Arc<dyn Directory>>,
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.roots.iter().map(|root| root.locate(""))).finish()
    }
}

/// A name that a store lists, and its model.
#[derive(Debug)]
pub struct Listed {
    /// The name.
    pub name: Name,
    /// The model, or why it cannot be used.
    pub entry: Result<Entry, OllamaError>,
}

impl Stores {
    /// The folders where Ollama keeps models on this system: `$OLLAMA_MODELS`, the user's folder,
    /// and the folders of the Linux service.
    pub fn from_env() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = var(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
        let service = ["/usr/share/ollama/.ollama/models", "/var/lib/ollama/.ollama/models", "/var/lib/ollama/models"];
        let service = service.iter().filter(|_| cfg!(target_os = "linux")).map(PathBuf::from);
        let own = home.map(|home| home.join(".ollama").join("models"));
        Self::new(var("OLLAMA_MODELS").into_iter().chain(own).chain(service))
    }

    /// Stores in these folders.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut paths = vec![];
        for root in roots {
            if !paths.contains(&root) {
                paths.push(root);
            }
        }
        Self::of(paths.into_iter().map(|root| Arc::new(FileDirectory::new(root)) as Arc<dyn Directory>))
    }

    /// Stores in these folders, which need not be folders of the file system.
    pub fn of(roots: impl IntoIterator<Item = Arc<dyn Directory>>) -> Self {
        Self { roots: roots.into_iter().collect() }
    }

    /// The model of this name in the first store that has it. Upper and lower case may differ.
    ///
    /// # Errors
    /// [`OllamaError::NotFound`] with similar names; the errors of a manifest or a layer that
    /// cannot be used.
    pub fn find(&self, name: &Name) -> Result<Entry, OllamaError> {
        for root in &self.roots {
            let manifest = name.manifest();
            match root.item(&manifest) {
                Ok(Item::File { .. }) => return Entry::read(root, name.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    return Err(OllamaError::Unreadable { path: root.locate(&manifest), error });
                }
                _ => {}
            }
        }
        let names = self.names();
        if let Some((root, like)) = names.iter().find(|(_, listed)| listed.is_like(name)) {
            return Entry::read(root, like.clone());
        }
        let stores = self.roots.iter().filter(|root| is_folder(root, "")).map(|root| root.locate("")).collect();
        Err(OllamaError::NotFound {
            name: name.to_string(),
            near: near(name, names.into_iter().map(|(_, name)| name)),
            stores,
        })
    }

    /// Every model of every store, sorted by name. If several stores have a name, the first store's
    /// model is listed.
    pub fn list(&self) -> Vec<Listed> {
        let mut listed: Vec<Listed> = vec![];
        for (root, name) in self.names() {
            if listed.iter().all(|known| known.name != name) {
                let entry = Entry::read(root, name.clone());
                listed.push(Listed { name, entry });
            }
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        listed
    }

    /// Whether there is any store.
    pub fn any(&self) -> bool {
        self.roots.iter().any(|root| is_folder(root, MANIFESTS))
    }

    fn names(&self) -> Vec<(&Arc<dyn Directory>, Name)> {
        let mut names = vec![];
        for root in &self.roots {
            // A folder that cannot be read has no names.
            let inside = |folder: &str| root.names(folder, MAX_NAMES).unwrap_or_default();
            for host in inside(MANIFESTS) {
                for user in inside(&format!("{MANIFESTS}/{host}")) {
                    for model in inside(&format!("{MANIFESTS}/{host}/{user}")) {
                        let tags = inside(&format!("{MANIFESTS}/{host}/{user}/{model}"));
                        let names_of_tags = tags.iter().filter_map(|tag| Name::new(&host, &user, &model, tag));
                        let is_file = |name: &Name| matches!(root.item(&name.manifest()), Ok(Item::File { .. }));
                        names.extend(names_of_tags.filter(is_file).map(|name| (root, name)));
                    }
                }
            }
        }
        names.truncate(MAX_NAMES);
        names
    }
}

fn is_folder(root: &Arc<dyn Directory>, path: &str) -> bool {
    matches!(root.item(path), Ok(Item::Folder))
}

/// The names most similar to `wanted`: first by the edit distance of the model's name, then by the
/// distance of the whole name.
fn near(wanted: &Name, names: impl Iterator<Item = Name>) -> Vec<String> {
    let text = wanted.to_string();
    let mut names: Vec<(usize, usize, String)> = names
        .map(|name| {
            let told = name.to_string();
            (distance(&wanted.model, &name.model), distance(&text, &told), told)
        })
        .collect();
    names.sort();
    names.dedup();
    names.into_iter().take(NEAR).map(|(_, _, name)| name).collect()
}

/// The Levenshtein distance in bytes; names are short.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
