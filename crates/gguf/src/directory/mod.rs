//! Folders of files, wherever they are: in the file system, in memory, or with another host.

mod file;
mod memory;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::{MaybeSend, MaybeSync, Result, Source};
pub use file::FileDirectory;
pub use memory::MemoryDirectory;

/// A folder of files, some of which may be in folders of it.
///
/// A path has its parts divided by `/`, such as `blobs/sha256-00`. The empty path is the folder
/// itself. No path leads out of the folder.
pub trait Directory: MaybeSend + MaybeSync {
    /// What a path names. Fails with [`io::ErrorKind::NotFound`] if that is neither a file nor a
    /// folder.
    fn item(&self, path: &str) -> io::Result<Item>;

    /// The names of `most` files and folders of a folder, or of all if there are fewer, sorted.
    fn names(&self, folder: &str, most: usize) -> io::Result<Vec<String>>;

    /// Opens a file.
    fn open(&self, path: &str) -> io::Result<Box<dyn Source>>;

    /// The name of a path in messages to people.
    fn locate(&self, path: &str) -> PathBuf;

    /// Writes a file, completely or not at all. `write` is called once; if it fails, the file stays
    /// as it was. A folder that only reads has no such function, and fails.
    fn write(&self, path: &str, _write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let error = io::ErrorKind::ReadOnlyFilesystem.into();
        Err(crate::Error::Write { error }.in_file(self.locate(path)))
    }

    /// Removes a file. It is no error if there is none. A folder that only reads has no such
    /// function, and fails.
    fn remove(&self, _path: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    /// The bytes of a file, or the first `most` of them if it has more.
    fn read(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        let source = self.open(path)?;
        let mut bytes = vec![0; source.len_bytes().min(most) as usize];
        source.read_at(0, &mut bytes)?;
        Ok(bytes)
    }
}

/// What a path of a [`Directory`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A file of so many bytes.
    File {
        bytes: u64,
    },
    Folder,
}

/// The parts of a path. Fails if it could lead out of the folder.
fn parts(path: &str) -> io::Result<Vec<&str>> {
    let parts: Vec<&str> = path.split('/').filter(|_| !path.is_empty()).collect();
    let is_name = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains(['\\', '\0']);
    match parts.iter().all(is_name) {
        true => Ok(parts),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("\"{}\" is no path", path.escape_debug()))),
    }
}

#[cfg(test)]
mod tests;
