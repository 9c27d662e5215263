//! The model stores on this machine.

use super::{Entry, Name, OllamaError};
use std::path::{Path, PathBuf};

/// Upper limits: of names in a list, and of names in an error.
const MAX_NAMES: usize = 10_000;
const NEAR: usize = 5;

/// Folders in which Ollama may keep models, in order of search.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    roots: Vec<PathBuf>,
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
        let mut stores = Self::default();
        for root in roots {
            if !stores.roots.contains(&root) {
                stores.roots.push(root);
            }
        }
        stores
    }

    /// The model of this name in the first store that has it. Upper and lower case may differ.
    ///
    /// # Errors
    /// [`OllamaError::NotFound`] with similar names; the errors of a manifest or a layer that
    /// cannot be used.
    pub fn find(&self, name: &Name) -> Result<Entry, OllamaError> {
        for root in &self.roots {
            let manifest = manifest(root, name);
            match std::fs::metadata(&manifest) {
                Ok(metadata) if metadata.is_file() => return Entry::read(root, name.clone(), &manifest),
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    return Err(OllamaError::Unreadable { path: manifest, error });
                }
                _ => {}
            }
        }
        let names = self.names();
        if let Some((root, like)) = names.iter().find(|(_, listed)| listed.is_like(name)) {
            return Entry::read(root, like.clone(), &manifest(root, like));
        }
        let stores = self.roots.iter().filter(|root| root.is_dir()).cloned().collect();
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
                let entry = Entry::read(root, name.clone(), &manifest(root, &name));
                listed.push(Listed { name, entry });
            }
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        listed
    }

    /// Whether there is any store.
    pub fn any(&self) -> bool {
        self.roots.iter().any(|root| root.join("manifests").is_dir())
    }

    fn names(&self) -> Vec<(&Path, Name)> {
        let mut names = vec![];
        for root in &self.roots {
            for (host, path) in entries(&root.join("manifests")) {
                for (user, path) in entries(&path) {
                    for (model, path) in entries(&path) {
                        let tags = entries(&path).into_iter().filter(|(_, path)| path.is_file());
                        names.extend(
                            tags.filter_map(|(tag, _)| Some((root.as_path(), Name::new(&host, &user, &model, &tag)?))),
                        );
                    }
                }
            }
        }
        names.truncate(MAX_NAMES);
        names
    }
}

fn manifest(root: &Path, name: &Name) -> PathBuf {
    name.parts().iter().fold(root.join("manifests"), |path, part| path.join(part))
}

/// The entries of a folder, sorted by name; empty if it cannot be read.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_NAMES);
    let mut entries: Vec<_> =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect();
    entries.sort();
    entries
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
