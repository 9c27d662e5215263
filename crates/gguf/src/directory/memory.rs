//! A folder in memory.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Directory, Item, parts};
use crate::{Error, Result, Source};

/// Files in memory, by their path. A folder exists if it has a file.
///
/// ```
/// use gguf::{Directory, MemoryDirectory};
///
/// let folder = MemoryDirectory::new();
/// folder.write("a/b.txt", &mut |out| out.write_all(b"text"))?;
/// assert_eq!(folder.names("a", 10)?, ["b.txt"]);
/// assert_eq!(folder.into_files()["a/b.txt"], b"text");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryDirectory {
    files: Mutex<Files>,
}

type Files = BTreeMap<String, Arc<Vec<u8>>>;

impl MemoryDirectory {
    /// A folder without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of all files, by their path.
    pub fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        let files = self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.into_iter().map(|(path, bytes)| (path, Arc::unwrap_or_clone(bytes))).collect()
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Into<String>> FromIterator<(S, Vec<u8>)> for MemoryDirectory {
    fn from_iter<I: IntoIterator<Item = (S, Vec<u8>)>>(files: I) -> Self {
        let files = files.into_iter().map(|(path, bytes)| (path.into(), Arc::new(bytes))).collect();
        Self { files: Mutex::new(files) }
    }
}

/// A path within a folder, if it is one.
fn inside<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

impl Directory for MemoryDirectory {
    fn item(&self, path: &str) -> io::Result<Item> {
        let files = self.files();
        match files.get(path) {
            Some(bytes) => Ok(Item::File { bytes: bytes.len() as u64 }),
            None if path.is_empty() || files.keys().any(|file| inside(file, path).is_some()) => Ok(Item::Folder),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(&self, folder: &str, most: usize) -> io::Result<Vec<String>> {
        match self.item(folder)? {
            Item::File { .. } => return Err(io::ErrorKind::NotADirectory.into()),
            Item::Folder => {}
        }
        let files = self.files();
        let paths = files.keys().filter_map(|path| inside(path, folder));
        let mut names: Vec<String> =
            paths.map(|path| path.split_once('/').map_or(path, |(name, _)| name).to_string()).collect();
        names.sort();
        names.dedup();
        names.truncate(most);
        Ok(names)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Source>> {
        let file = self.files().get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(file))
    }

    fn locate(&self, path: &str) -> PathBuf {
        path.into()
    }

    fn write(&self, path: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let mut bytes = vec![];
        let mut run = || -> io::Result<()> {
            let is_file = !parts(path)?.is_empty() && !matches!(self.item(path), Ok(Item::Folder));
            if is_file { write(&mut bytes) } else { Err(io::ErrorKind::IsADirectory.into()) }
        };
        run().map_err(|error| Error::Write { error }.in_file(path))?;
        self.files().insert(path.to_string(), Arc::new(bytes));
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        if matches!(self.item(path), Ok(Item::Folder)) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.files().remove(path);
        Ok(())
    }
}
