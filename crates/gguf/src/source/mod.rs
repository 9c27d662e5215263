//! Sources of a file's bytes: memory, positioned reads, a map, or several joined parts.

mod file;
mod joined;
#[cfg(feature = "mmap")]
mod map;

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::sync::Arc;

use crate::{MaybeSend, MaybeSync};
pub use file::FileSource;
pub use joined::JoinedSource;
#[cfg(feature = "mmap")]
pub use map::MapSource;

/// Random access to the bytes of a file of known length.
pub trait Source: MaybeSend + MaybeSync {
    /// Length of the whole file.
    fn len_bytes(&self) -> u64;

    /// Fills `buf` with the bytes from `offset` on. Fails if the file ends too early or cannot be
    /// read.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// All bytes, if they are in memory or mapped.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// `len` bytes from `offset` on, if they are in memory or mapped in one piece.
    fn slice(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.bytes()?.get(start..end)
    }

    /// True if `bytes` can neither change nor disappear. Headers are then read in place. A mapped
    /// file can change, so it returns false.
    fn is_memory(&self) -> bool {
        false
    }
}

/// Random access to the bytes of a file, each read awaited.
pub trait AsyncSource: MaybeSend + MaybeSync {
    /// Length of the whole file.
    fn len_bytes(&self) -> u64;

    /// Fills `buf` with the bytes from `offset` on. Fails if the file ends too early or cannot be
    /// read.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> impl Future<Output = io::Result<()>>;
}

macro_rules! memory {
    ($($ty:ty)*) => {$(
        impl Source for $ty {
            fn len_bytes(&self) -> u64 {
                self.len() as u64
            }

            fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
                let bytes = self.slice(offset, buf.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
                buf.copy_from_slice(bytes);
                Ok(())
            }

            fn bytes(&self) -> Option<&[u8]> {
                Some(self)
            }

            fn is_memory(&self) -> bool {
                true
            }
        }
    )*};
}

memory!(Vec<u8> &'static [u8] Arc<[u8]> Arc<Vec<u8>> Cow<'static, [u8]>);
