//! Atomic writes: a file is written completely or not at all. This project writes all files this
//! way.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Writes a file under a temporary name in the same folder, syncs it, and renames it to `path`.
///
/// A reader always sees the complete old file or the complete new file, even after a power failure.
/// If `write` fails or panics, the temporary file is removed and the old file stays. An existing
/// file keeps its permissions. A symbolic link stays a link: the file that it points to is
/// replaced. A device or a pipe is written directly, because a rename would replace it by a file.
pub fn atomic_write(path: impl AsRef<Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let named = path.as_ref();
    let path = &fs::canonicalize(named).unwrap_or_else(|_| named.to_owned());
    let run = || -> io::Result<()> {
        if fs::metadata(named).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let mut out = BufWriter::with_capacity(1 << 20, File::options().write(true).open(named)?);
            write(&mut out)?;
            return out.flush();
        }
        let (file, temporary) = create_beside(path)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Ok(metadata) = fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary.0, path)?;
        // After the rename the guard finds no temporary file to remove.
        sync_folder(path)
    };
    run().map_err(|error| Error::Write { error }.in_file(named))
}

/// Removes a temporary file when dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // The error is ignored: after the rename the file no longer exists, and after a failed
        // write the first error is the one to report.
        let _ = fs::remove_file(&self.0);
    }
}

fn create_beside(path: &Path) -> io::Result<(File, Temporary)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy().into_owned();
    loop {
        // Every `RandomState` has a new random seed, so the hash is a random number.
        let unique = format!(".{name:.64}.{:016x}.tmp", RandomState::new().hash_one(0));
        let temporary = path.with_file_name(unique);
        match File::options().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, Temporary(temporary))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Makes the rename itself durable.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}
