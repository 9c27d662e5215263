//! Positioned reads from a file.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::Source;
use crate::{Error, Result};

/// A regular file with positioned reads. It has no shared cursor, so several threads can read at
/// the same time.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
}

impl FileSource {
    /// Opens a regular file. Directories, pipes and devices are refused before they are opened,
    /// because opening a pipe blocks.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::open_unnamed(path).map_err(|error| error.in_file(path))
    }

    /// As [`FileSource::open`]. Errors do not name the file.
    pub(crate) fn open_unnamed(path: &Path) -> Result<Self> {
        check_regular(&fs::metadata(path).map_err(|error| Error::Open { error })?)?;
        let file = File::open(path).map_err(|error| Error::Open { error })?;
        let metadata = file.metadata().map_err(|error| Error::Open { error })?;
        check_regular(&metadata)?;
        Ok(Self { file, len: metadata.len() })
    }

    #[cfg(feature = "mmap")]
    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

impl Source for FileSource {
    fn len_bytes(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        match offset.checked_add(buf.len() as u64) {
            Some(end) if end <= self.len => read_exact_at(&self.file, offset, buf),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buf, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
    while !buf.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                offset += n as u64;
                buf = &mut buf[n..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(not(any(unix, windows)))]
fn read_exact_at(_file: &File, _offset: u64, _buf: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn check_regular(metadata: &fs::Metadata) -> Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(Error::NotAFile { found: if metadata.is_dir() { "a directory" } else { "a pipe or a device" } })
}
