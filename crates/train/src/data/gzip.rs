//! Bytes that gzip has packed.

use super::files::{Bytes, CHUNK_BYTES};
use flate2::bufread::MultiGzDecoder;
use gguf::Source;
use std::io::{self, BufRead, BufReader, Read};

/// Bytes that any stream may become, however few it has.
const FREE_BYTES: u64 = 64 << 20;
/// Times the packed bytes that a longer stream may become. Lines of JSON become 3 to 50 times
/// smaller; the most that gzip can do is 1032.
const RATIO: u64 = 256;

/// Unpacks while it is read, as long as the ratio is one of texts.
pub(super) struct Unpacked<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    bytes: u64,
}

/// Counts what is taken.
struct Counted<R> {
    from: R,
    bytes: u64,
}

impl<R: BufRead> Unpacked<R> {
    pub fn new(from: R) -> Self {
        Self { decoder: MultiGzDecoder::new(Counted { from, bytes: 0 }), bytes: 0 }
    }

    /// Packed bytes that were read.
    pub fn packed(&self) -> u64 {
        self.decoder.get_ref().bytes
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.decoder.read(into).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("the packed bytes end early"),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => io::Error::other(format!("the packed bytes are damaged: {error}")),
            _ => error,
        })?;
        self.bytes += len as u64;
        if self.bytes > FREE_BYTES.max(self.packed().saturating_mul(RATIO)) {
            return Err(io::Error::other(format!(
                "it unpacks to more than {RATIO} times its size; unpack it yourself (gunzip) if it is good"
            )));
        }
        Ok(len)
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.from.read(into)?;
        self.bytes += len as u64;
        Ok(len)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.from.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.bytes += len as u64;
        self.from.consume(len);
    }
}

/// A file without a name, for reads at any place. It ends with the process, however that ends.
#[cfg(not(target_arch = "wasm32"))]
struct Temporary {
    file: std::sync::Mutex<std::fs::File>,
    len: u64,
}

#[cfg(not(target_arch = "wasm32"))]
impl Source for Temporary {
    fn len_bytes(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        use std::io::{Seek, SeekFrom};
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    }
}

/// The unpacked bytes of a source, in a temporary file. `progress` is called with the packed bytes
/// that are unpacked, and with all of them.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn unpack(source: &dyn Source, progress: &dyn Fn(u64, u64)) -> Result<Box<dyn Source>, String> {
    use std::io::Write;

    let packed = BufReader::with_capacity(CHUNK_BYTES, Bytes::new(source, 0, |_: &[u8]| ()));
    let (mut from, mut chunk) = (Unpacked::new(packed), vec![0; CHUNK_BYTES]);
    let folder = std::env::temp_dir();
    let unwritten = |error: io::Error| {
        format!("it is packed by gzip and cannot be unpacked into {} (TMPDIR names another folder): {error}", folder.display())
    };
    let mut file = tempfile::tempfile_in(&folder).map_err(unwritten)?;
    loop {
        let len = from.read(&mut chunk).map_err(|error| error.to_string())?;
        if len == 0 {
            break;
        }
        file.write_all(&chunk[..len]).map_err(unwritten)?;
        progress(from.packed(), source.len_bytes());
    }
    Ok(Box::new(Temporary { file: file.into(), len: from.bytes }))
}

/// A browser has no temporary files.
#[cfg(target_arch = "wasm32")]
pub(super) fn unpack(_source: &dyn Source, _progress: &dyn Fn(u64, u64)) -> Result<Box<dyn Source>, String> {
    Err("it is packed by gzip; unpack it first".to_string())
}
