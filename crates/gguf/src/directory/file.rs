//! A folder of the file system.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use super::{Directory, Item, parts};
use crate::{Error, FileSource, Result, Source, atomic_write};

/// A folder of the file system. It need not exist: the first file that is written makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDirectory {
    root: PathBuf,
}

impl FileDirectory {
    /// The folder at this path.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, path: &str) -> io::Result<PathBuf> {
        parts(path)?;
        Ok(self.locate(path))
    }
}

impl Directory for FileDirectory {
    fn item(&self, path: &str) -> io::Result<Item> {
        let found = fs::metadata(self.path(path)?)?;
        match (found.is_file(), found.is_dir()) {
            (true, _) => Ok(Item::File { bytes: found.len() }),
            (_, true) => Ok(Item::Folder),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(&self, folder: &str, most: usize) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.path(folder)?)?.flatten().take(most);
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(FileSource::open_unnamed(&self.path(path)?)?))
    }

    /// The path, where the empty path gives that of the folder.
    fn locate(&self, path: &str) -> PathBuf {
        path.split('/').filter(|part| !part.is_empty()).fold(self.root.clone(), |root, part| root.join(part))
    }

    fn write(&self, path: &str, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let to = self.path(path).map_err(|error| Error::Write { error }.in_file(self.locate(path)))?;
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| Error::Write { error }.in_file(folder))?;
        }
        atomic_write(to, write)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.path(path)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
