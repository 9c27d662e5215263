//! A tar archive, packed by gzip, that depends on nothing but the names and bytes of its files.

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// A file of the archive.
pub struct Entry {
    pub name: String,
    pub bytes: Vec<u8>,
    /// The bits of its permissions.
    pub mode: u32,
}

impl Entry {
    pub fn file(name: String, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name, bytes: bytes.into(), mode: 0o644 }
    }

    pub fn program(name: String, bytes: Vec<u8>) -> Self {
        Self { name, bytes, mode: 0o755 }
    }
}

/// Writes the archive, and its SHA-256 beside it as `sha256sum -c` reads it.
pub fn write(path: &Path, mut entries: Vec<Entry>) -> Result<PathBuf> {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    // Neither a time nor a name of the system: the same bytes on every machine.
    let packed = GzBuilder::new().mtime(0).operating_system(255).write(vec![], Compression::best());
    let mut archive = tar::Builder::new(packed);
    for Entry { name, bytes, mode } in &entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(*mode);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, name, &bytes[..]).with_context(|| name.clone())?;
    }
    let packed = archive.into_inner()?.finish()?;
    let name = path.file_name().context("an archive needs a name")?.to_string_lossy();
    std::fs::write(path, &packed).with_context(|| path.display().to_string())?;
    std::fs::write(format!("{}.sha256", path.display()), format!("{}  {name}\n", sha256(&packed)))?;
    Ok(path.to_path_buf())
}

/// The SHA-256 of these bytes in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files of an archive. They must have no time and no owner.
#[cfg(test)]
pub fn read(packed: &[u8]) -> Result<Vec<Entry>> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed));
    let mut entries = vec![];
    for file in archive.entries()? {
        let mut file = file?;
        let header = file.header();
        anyhow::ensure!((header.mtime()?, header.uid()?, header.gid()?) == (0, 0, 0), "a time or an owner");
        let (name, mode) = (file.path()?.to_string_lossy().into_owned(), header.mode()?);
        let mut bytes = vec![];
        std::io::Read::read_to_end(&mut file, &mut bytes)?;
        entries.push(Entry { name, bytes, mode });
    }
    Ok(entries)
}
