//! Atomic writes: a file is written completely or not at all. This project writes all files this
//! way.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Writes a file under a temporary name in the same folder, syncs it, and renames it to `path`.
///
/// A reader always sees the complete old file or the complete new file, even after a power failure.
/// If `write` fails or panics, the temporary file is removed and the old file stays. If the process
/// is killed, the temporary file stays until the next write of the same file. An existing file
/// keeps its permissions. A symbolic link stays a link: the file that it points to is replaced. A
/// device or a pipe is written directly, because a rename would replace it by a file.
pub fn atomic_write(path: impl AsRef<Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let named = path.as_ref();
    let path = &fs::canonicalize(named).unwrap_or_else(|_| named.to_owned());
    let run = || -> io::Result<()> {
        if fs::metadata(named).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let mut out = BufWriter::with_capacity(1 << 20, File::options().write(true).open(named)?);
            write(&mut out)?;
            return out.flush();
        }
        remove_abandoned(path);
        let (file, temporary) = create_beside(path)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Ok(metadata) = fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.sync_all()?;
        // The lock on the file lasts until it has its name. Windows renames no open file.
        let locked = (!cfg!(windows)).then_some(file);
        fs::rename(&temporary.0, path)?;
        drop(locked);
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

/// The names of temporary files for `path`: what comes before and after 16 random digits.
fn around(path: &Path) -> Option<(String, &'static str)> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some((format!(".{name:.64}."), ".tmp"))
}

fn create_beside(path: &Path) -> io::Result<(File, Temporary)> {
    let (before, after) = around(path).ok_or(io::ErrorKind::InvalidFilename)?;
    loop {
        // Every `RandomState` has a new random seed, so the hash is a random number.
        let unique = format!("{before}{:016x}{after}", RandomState::new().hash_one(0));
        let temporary = path.with_file_name(unique);
        let file = match File::options().write(true).create_new(true).open(&temporary) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let temporary = Temporary(temporary);
        // The lock tells other writers that this one is alive. A writer that found the file before
        // it was locked has removed it or is about to. Some file systems have no locks.
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) | Err(TryLockError::Error(_)) if temporary.0.exists() => return Ok((file, temporary)),
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
    }
}

/// Removes the temporary files of writers of `path` that were killed. A writer that is alive holds
/// a lock. Errors are ignored: a file that cannot be removed does no harm.
fn remove_abandoned(path: &Path) {
    let Some((before, after)) = around(path) else { return };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(&before)?.strip_suffix(after));
        if !digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit())) {
            continue;
        }
        if let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
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
