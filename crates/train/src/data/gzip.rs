//! Bytes that gzip has packed.

use super::bytes::{Bytes, CHUNK_BYTES};
use crate::temporary::stored;
use flate2::bufread::MultiGzDecoder;
use gguf::{Progress, Source};
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
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.decoder.read(into).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("the packed bytes end early"),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                io::Error::other(format!("the packed bytes are damaged: {error}"))
            }
            _ => error,
        })?;
        self.bytes += len as u64;
        if self.bytes > FREE_BYTES.max(self.decoder.get_ref().bytes.saturating_mul(RATIO)) {
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

/// The unpacked bytes of a source in a temporary file, for reads at any place. `progress` gets the
/// packed bytes that were read.
pub(super) fn unpack(source: &dyn Source, progress: &dyn Fn(Progress)) -> Result<Box<dyn Source>, String> {
    let (mut done, total) = (0, source.len_bytes());
    let seen = |bytes: &[u8]| {
        done += bytes.len() as u64;
        progress(Progress { done, total });
    };
    stored(&mut Unpacked::new(BufReader::with_capacity(CHUNK_BYTES, Bytes::new(source, 0, seen))))
}
