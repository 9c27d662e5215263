//! The cache that all programs of the hub share:
//!
//! ```text
//! models--OWNER--REPO/refs/main                the commit that `main` was
//! models--OWNER--REPO/snapshots/COMMIT/FILE    a link to the blob
//! models--OWNER--REPO/blobs/SHA256             the content; while it is incomplete, SHA256.incomplete
//! .locks/models--OWNER--REPO/SHA256.lock       the lock of the one program that downloads it
//! ```
//!
//! A blob gets its name only when it is complete and its SHA-256 is right. Where a file system has
//! no links, the blob itself stands at the place of its link.

use super::choose::{self, Group, is_gguf};
use super::name::{Name, Pick, is_path};
use anyhow::{Context, Result};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Upper limits: of files in a snapshot, of folders within it, of snapshots and repositories.
const MAX_FILES: usize = 10_000;
const DEPTH: usize = 8;

/// A repository in the cache.
pub struct Repo {
    pub folder: PathBuf,
    pub locks: PathBuf,
    name: Name,
}

/// A model in the cache.
#[derive(Clone, Debug)]
pub struct Cached {
    /// Its name, with the quantization or the file.
    pub name: Name,
    /// The paths of its parts, in order.
    pub parts: Vec<PathBuf>,
}

/// A snapshot of a repository.
pub struct Snapshot {
    pub folder: PathBuf,
    /// The complete GGUF files, relative to the folder.
    pub files: Vec<String>,
}

impl Snapshot {
    /// The path of a file.
    pub fn path(&self, file: &str) -> PathBuf {
        file.split('/').fold(self.folder.clone(), |path, part| path.join(part))
    }

    /// The complete models.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups = choose::groups(self.files.iter().map(String::as_str));
        groups.retain(Group::is_whole);
        groups
    }
}

/// Every repository in the cache, sorted by name.
pub fn repositories(cache: &Path) -> Vec<Repo> {
    let mut names: Vec<String> = entries(cache).into_iter().map(|(name, _)| name).collect();
    names.sort();
    let repo = |folder: &String| {
        let (owner, repo) = folder.strip_prefix("models--")?.split_once("--")?;
        Some(Repo::new(cache, &Name::parse(&format!("hf:{owner}/{repo}"))?.ok()?))
    };
    names.iter().filter_map(repo).collect()
}

impl Repo {
    /// The repository of this name, which need not be in the cache.
    pub fn new(cache: &Path, name: &Name) -> Self {
        let folder = format!("models--{}--{}", name.owner, name.repo);
        let locks = cache.join(".locks").join(&folder);
        Self { folder: cache.join(folder), locks, name: name.with(Pick::Usual) }
    }

    /// The path of a blob.
    pub fn blob(&self, sha256: &str) -> PathBuf {
        self.folder.join("blobs").join(sha256)
    }

    /// The commit that `main` was when the hub was asked last.
    pub fn main(&self) -> Option<String> {
        let mut text = String::new();
        fs::File::open(self.folder.join("refs").join("main")).ok()?.take(100).read_to_string(&mut text).ok()?;
        let commit = text.trim();
        is_commit(commit).then(|| commit.to_string())
    }

    /// Records the commit of `main`.
    pub fn set_main(&self, commit: &str) -> Result<()> {
        let path = self.folder.join("refs").join("main");
        crate::cache::try_write(&path, commit.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The snapshot of a commit.
    pub fn snapshot(&self, commit: &str) -> Snapshot {
        let folder = self.folder.join("snapshots").join(commit);
        let mut files = vec![];
        collect(&folder, "", DEPTH, &mut files);
        files.sort();
        Snapshot { folder, files }
    }

    /// The snapshots: first the one of `main`, then the newest.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        let main = self.main();
        let time = |path: &Path| path.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut commits: Vec<(bool, SystemTime, String)> = entries(&self.folder.join("snapshots"))
            .into_iter()
            .filter(|(commit, _)| is_commit(commit))
            .map(|(commit, path)| (main.as_deref() == Some(&commit), time(&path), commit))
            .collect();
        commits.sort_by(|a, b| b.cmp(a));
        commits.iter().map(|(_, _, commit)| self.snapshot(commit)).collect()
    }

    /// The model that a name means among the complete ones. With `older`, other snapshots than
    /// that of `main` are searched too.
    pub fn find(&self, pick: &Pick, older: bool) -> Option<Cached> {
        let main = self.main();
        let snapshots = self.snapshots();
        let of_main = |snapshot: &&Snapshot| main.as_deref().is_some_and(|commit| snapshot.folder.ends_with(commit));
        snapshots.iter().filter(|snapshot| older || of_main(snapshot)).find_map(|snapshot| {
            let groups = snapshot.groups();
            let group = choose::choose(&groups, pick).ok()?;
            Some(self.cached(snapshot, &groups, group))
        })
    }

    /// The complete models of the first snapshot that has any.
    pub fn models(&self) -> Vec<Cached> {
        let snapshot = self.snapshots().into_iter().find(|snapshot| !snapshot.groups().is_empty());
        snapshot.map_or(vec![], |snapshot| {
            let groups = snapshot.groups();
            groups.iter().map(|group| self.cached(&snapshot, &groups, group)).collect()
        })
    }

    fn cached(&self, snapshot: &Snapshot, groups: &[Group], group: &Group) -> Cached {
        let parts = group.parts.iter().map(|file| snapshot.path(file)).collect();
        Cached { name: self.name.with(choose::pick(groups, group)), parts }
    }

    /// Puts a blob into a snapshot. A blob that the snapshot has already stays.
    pub fn link(&self, commit: &str, file: &str, sha256: &str) -> Result<PathBuf> {
        let (blob, place) = (self.blob(sha256), self.snapshot_path(commit, file));
        let up = "../".repeat(file.split('/').count() + 1);
        let target = PathBuf::from(format!("{up}blobs/{sha256}"));
        let is_linked = fs::read_link(&place).is_ok_and(|linked| linked == target);
        if !is_linked || !place.is_file() {
            let linked = place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| put(&blob, &target, &place));
            linked.with_context(|| format!("cannot link {}", place.display()))?;
        }
        Ok(place)
    }

    /// Whether the snapshot has the file itself, not a link to its blob, with this length.
    pub fn has_copy(&self, commit: &str, file: &str, bytes: u64) -> bool {
        let place = self.snapshot_path(commit, file);
        fs::symlink_metadata(place).is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
    }

    fn snapshot_path(&self, commit: &str, file: &str) -> PathBuf {
        let folder = self.folder.join("snapshots").join(commit);
        file.split('/').fold(folder, |path, part| path.join(part))
    }
}

/// Links `place` to the blob by the relative path `target`. Where this is refused, the blob moves.
fn put(blob: &Path, target: &Path, place: &Path) -> std::io::Result<()> {
    match fs::remove_file(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let linked = symlink(target, place);
    if linked.is_ok() { Ok(()) } else { fs::rename(blob, place) }
}

#[cfg(unix)]
fn symlink(target: &Path, place: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

#[cfg(windows)]
fn symlink(target: &Path, place: &Path) -> std::io::Result<()> {
    std::os::windows::fs::symlink_file(target, place)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Whether the text is the hash of a commit.
pub fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether the text is a SHA-256 in hexadecimal digits.
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The entries of a folder; empty if it cannot be read.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES);
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect()
}

/// Collects the GGUF files of a snapshot whose content is there.
fn collect(folder: &Path, before: &str, depth: usize, files: &mut Vec<String>) {
    for (name, path) in entries(folder) {
        let relative = if before.is_empty() { name } else { format!("{before}/{name}") };
        if files.len() == MAX_FILES || !is_path(&relative) {
            continue;
        }
        if is_gguf(&relative) && path.is_file() {
            files.push(relative);
        } else if depth > 0 && fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
            collect(&path, &relative, depth - 1, files);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: [&str; 2] = ["1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"];

    fn name() -> Name {
        Name::parse("hf:me/M-GGUF").unwrap().unwrap()
    }

    fn add(repo: &Repo, commit: &str, file: &str, sha256: &str) {
        fs::create_dir_all(repo.folder.join("blobs")).unwrap();
        fs::write(repo.blob(sha256), "content").unwrap();
        repo.link(commit, file, sha256).unwrap();
    }

    #[test]
    fn a_model_of_main_is_found_and_an_older_one_where_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let repo = Repo::new(folder.path(), &name());
        let quant = |text: &str| Pick::Quant(text.to_string());
        add(&repo, COMMIT[0], "m-Q8_0.gguf", &"a".repeat(64));
        assert!(repo.find(&Pick::Usual, false).is_none(), "main is not known");
        repo.set_main(COMMIT[1]).unwrap();
        add(&repo, COMMIT[1], "sub/m-Q4_K_M.gguf", &"b".repeat(64));
        let found = repo.find(&Pick::Usual, false).unwrap();
        assert_eq!(found.name.to_string(), "hf:me/M-GGUF:Q4_K_M");
        assert_eq!(fs::read_to_string(&found.parts[0]).unwrap(), "content", "a link out of a subfolder");
        assert!(repo.find(&quant("Q8_0"), false).is_none() && repo.find(&quant("Q8_0"), true).is_some());
        fs::remove_file(repo.blob(&"b".repeat(64))).unwrap();
        assert!(repo.find(&quant("Q4_K_M"), true).is_none(), "a link without a blob is no file");
    }

    #[test]
    fn a_split_file_without_a_part_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let repo = Repo::new(folder.path(), &name());
        repo.set_main(COMMIT[0]).unwrap();
        add(&repo, COMMIT[0], "m-Q8_0-00001-of-00002.gguf", &"a".repeat(64));
        assert!(repo.find(&Pick::Usual, true).is_none());
        add(&repo, COMMIT[0], "m-Q8_0-00002-of-00002.gguf", &"b".repeat(64));
        assert_eq!(repo.find(&Pick::Usual, true).unwrap().parts.len(), 2);
    }

    #[test]
    fn where_links_are_refused_the_blob_moves() {
        let folder = tempfile::tempdir().unwrap();
        let repo = Repo::new(folder.path(), &name());
        let sha256 = "a".repeat(64);
        fs::create_dir_all(repo.folder.join("blobs")).unwrap();
        fs::write(repo.blob(&sha256), "content").unwrap();
        let place = folder.path().join("m.gguf");
        // A file name that is too long is refused as a target of a link on every system.
        put(&repo.blob(&sha256), Path::new(&"x".repeat(10_000)), &place).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "content");
        assert!(!repo.blob(&sha256).exists());
    }
}
