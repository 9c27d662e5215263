//! Removes models from the cache, and nothing outside it.

use super::cache::{Cached, Repo, Snapshot};
use super::choose::{self, is_beside, is_gguf};
use super::download;
use super::name::{Name, Pick};
use super::outcome::Removed;
use super::settings::Settings;
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Removes a model from every snapshot, and the blobs that no snapshot uses then. With the last
/// model of a repository its encoders of images and its interrupted downloads are removed, too.
///
/// # Errors
/// The cache does not have the model, or has several of this name.
pub fn remove(name: &Name) -> Result<Removed> {
    let settings = Settings::from_env()?;
    let repo = Repo::new(&settings.cache, name);
    let is_inside = |folder: &Path| {
        let root = settings.cache.canonicalize().ok();
        root.is_some_and(|root| folder.canonicalize().is_ok_and(|folder| folder.parent() == Some(&root)))
    };
    if !is_inside(&repo.folder) {
        return Err(absent(name));
    }
    let mut removal = Removal { repo: &repo, files: 0, bytes: 0 };
    let name = removal.model(name)?;
    let is_empty =
        repo.snapshots().iter().all(|snapshot| choose::groups(snapshot.files.iter().map(String::as_str)).is_empty());
    if is_empty {
        removal.rest()?;
    }
    let Removal { files, bytes, .. } = removal;
    if files == 0 { Err(absent(&name)) } else { Ok(Removed { name, files, bytes }) }
}

fn absent(name: &Name) -> anyhow::Error {
    anyhow!("{name} is not in the cache of the hub; `weft list` shows the models that are")
}

struct Removal<'a> {
    repo: &'a Repo,
    files: usize,
    bytes: u64,
}

impl Removal<'_> {
    /// Removes the model that the name means.
    fn model(&mut self, name: &Name) -> Result<Name> {
        let models = self.repo.models();
        let name = match (&name.pick, models.as_slice()) {
            (Pick::Usual, [one]) => one.name.clone(),
            (Pick::Usual, [_, _, ..]) => {
                let names: Vec<String> = models.iter().map(|Cached { name, .. }| name.to_string()).collect();
                return Err(anyhow!("{name}: the cache has {}; name one of them", names.join(", ")));
            }
            _ => name.clone(),
        };
        for snapshot in self.repo.snapshots() {
            let groups = choose::groups(snapshot.files.iter().map(String::as_str));
            if let Ok(group) = choose::choose(&groups, &name.pick) {
                self.delete(&snapshot, &group.parts)?;
            }
        }
        Ok(name)
    }

    /// Removes files of a snapshot, and their blobs if no other file is a link to them.
    fn delete(&mut self, snapshot: &Snapshot, files: &[String]) -> Result<()> {
        for file in files {
            let place = snapshot.path(file);
            let linked = fs::symlink_metadata(&place).is_ok_and(|metadata| metadata.is_symlink());
            let blob = place.canonicalize().ok().filter(|blob| linked && self.is_blob(blob));
            let bytes = if linked { 0 } else { place.metadata().map_or(0, |metadata| metadata.len()) };
            erase(&place)?;
            self.files += 1;
            self.bytes += bytes;
            if let Some(blob) = blob.filter(|blob| !self.used().contains(blob)) {
                self.bytes += blob.metadata().map_or(0, |metadata| metadata.len());
                erase(&blob)?;
            }
        }
        Ok(())
    }

    /// Whether a link led to a blob of this repository, not to a file elsewhere.
    fn is_blob(&self, path: &Path) -> bool {
        let blobs = self.repo.folder.join("blobs").canonicalize().ok();
        blobs.is_some_and(|blobs| path.parent() == Some(&blobs))
    }

    /// The blobs that any file of any snapshot is a link to.
    fn used(&self) -> BTreeSet<PathBuf> {
        let mut used = BTreeSet::new();
        walk(&self.repo.folder.join("snapshots"), 10, &mut |path| {
            used.extend(path.canonicalize().ok());
        });
        used
    }

    /// Removes what is left of a repository without models: encoders, interrupted downloads that no
    /// program continues, and folders that are empty.
    fn rest(&mut self) -> Result<()> {
        for snapshot in self.repo.snapshots() {
            let beside: Vec<String> =
                snapshot.files.iter().filter(|file| is_gguf(file) && is_beside(file)).cloned().collect();
            self.delete(&snapshot, &beside)?;
        }
        let blobs = self.repo.folder.join("blobs");
        for entry in fs::read_dir(&blobs).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(sha256) = name.strip_suffix(".incomplete") else { continue };
            let lock = File::open(download::lock(self.repo, sha256)).ok();
            if lock.as_ref().is_none_or(|lock| lock.try_lock().is_ok()) {
                self.files += 1;
                self.bytes += entry.metadata().map_or(0, |metadata| metadata.len());
                erase(&entry.path())?;
            }
        }
        // Only empty folders go: other programs may keep other files here.
        let mut folders = vec![];
        folders_of(&self.repo.folder.join("snapshots"), 10, &mut folders);
        folders.into_iter().for_each(|folder| drop(fs::remove_dir(folder)));
        if !self.repo.folder.join("snapshots").exists() {
            let _ = fs::remove_file(self.repo.folder.join("refs").join("main"));
        }
        for folder in [self.repo.folder.join("refs"), blobs, self.repo.folder.clone()] {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }
}

fn erase(path: &Path) -> Result<()> {
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Calls `visit` for every file under a folder, without following links to folders.
fn walk(folder: &Path, depth: usize, visit: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(ty) if ty.is_dir() && depth > 0 => walk(&entry.path(), depth - 1, visit),
            Ok(ty) if !ty.is_dir() => visit(&entry.path()),
            _ => {}
        }
    }
}

/// The folders under a folder and itself, the innermost first.
fn folders_of(folder: &Path, depth: usize, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|ty| ty.is_dir()) && depth > 0 {
            folders_of(&entry.path(), depth - 1, all);
        }
    }
    all.push(folder.to_path_buf());
}
