//! Temporary files without a name. They end with the process, however that ends.

use gguf::Source;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

/// A file without a name, for reads at any place.
struct Temporary {
    file: Mutex<File>,
    len: u64,
}

impl Source for Temporary {
    fn len_bytes(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    }
}

/// All bytes of `from` in a temporary file. The error is the reason.
pub(crate) fn stored(from: &mut dyn Read) -> Result<Box<dyn Source>, String> {
    let folder = std::env::temp_dir();
    let unwritten = |error: io::Error| {
        format!(
            "it is packed by gzip and cannot be unpacked into {} (TMPDIR names another folder): {error}",
            folder.display()
        )
    };
    let mut file = tempfile::tempfile_in(&folder).map_err(unwritten)?;
    let (mut len, mut chunk) = (0, vec![0; 64 << 10]);
    loop {
        let read = from.read(&mut chunk).map_err(|error| error.to_string())?;
        if read == 0 {
            break;
        }
        file.write_all(&chunk[..read]).map_err(unwritten)?;
        len += read as u64;
    }
    Ok(Box::new(Temporary { file: file.into(), len }))
}
