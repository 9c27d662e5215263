//! Outputs are checked before work begins: a path that cannot be written, and a disk without room.

use crate::exit::Interrupted;
use crate::interrupt;
use anyhow::{Context, Result, anyhow};
use gguf::atomic_write;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Refuses a path that no file can be written to.
pub fn writable(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(anyhow!("{} is a directory; name a file", path.display()));
    }
    if !folder.is_dir() {
        return Err(anyhow!("{}: there is no folder {}", path.display(), folder.display()));
    }
    if path.exists() && !path.is_file() {
        // A device or a pipe is written directly.
        return Ok(());
    }
    try_out(path).with_context(|| format!("{} cannot be written", path.display()))
}

/// Creates and removes a temporary file beside a path. A file of this name is not changed. A signal
/// waits until the temporary file is gone.
fn try_out(path: &Path) -> Result<()> {
    let guard = interrupt::stops(Arc::default());
    let mut made = false;
    let tried = atomic_write(path, |_| {
        made = true;
        Err(io::ErrorKind::Interrupted.into())
    });
    match tried {
        _ if guard.end() => Err(Interrupted.into()),
        Err(error) if !made => Err(error.into()),
        _ => Ok(()),
    }
}

/// Refuses a folder whose disk has no room for so many bytes.
pub fn room(folder: &Path, needed: u64, what: &str) -> Result<()> {
    // Where nothing tells, the writer will.
    fs4::available_space(folder).map_or(Ok(()), |free| refuse(folder, needed, free, what))
}

fn refuse(folder: &Path, needed: u64, free: u64, what: &str) -> Result<()> {
    if needed <= free {
        return Ok(());
    }
    let [needed, free] = [needed, free].map(model::Size);
    Err(anyhow!(
        "{}: its disk has {free} free, but {what} need {needed}; make room, or name a folder on another disk",
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_output_is_refused_and_nothing_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        assert!(writable(&at("out.gguf")).is_ok());
        assert!(writable(folder.path()).unwrap_err().to_string().contains("is a directory; name a file"));
        assert!(writable(&at("no/out.gguf")).unwrap_err().to_string().contains("there is no folder"));
        std::fs::write(at("old"), "old").expect("room");
        assert!(writable(&at("old")).is_ok());
        assert_eq!(std::fs::read(at("old")).expect("a file"), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn a_disk_without_room_is_refused_with_both_numbers() {
        let folder = Path::new("facts");
        assert!(refuse(folder, 5_000_000, 5_000_000, "adapters").is_ok());
        let error = refuse(folder, 5_000_000, 4_000_000, "adapters").unwrap_err().to_string();
        assert!(error.starts_with("facts: its disk has 4.0 MB free, but adapters need 5.0 MB;"), "{error}");
        assert!(room(&std::env::temp_dir(), 1, "adapters").is_ok());
    }
}
