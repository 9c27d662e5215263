//! Sessions that outlive their process, and sessions that part.
//!
//! A snapshot is a magic word, the version and the header's length (u32), the header (`snapshot/header.rs`), a checksum, then for
//! every cache the rows of its keys and of its values in the cache's own type (of a window's only those that the next row and the
//! last one see), and a checksum again. Checksums are SHA-256 of all bytes before them.

mod digest;
mod error;
mod header;
mod stream;

pub(crate) use digest::sample;
pub use error::SnapshotError;

use crate::error::Error;
use crate::model::Model;
use crate::sequence::{Ring, known};
use crate::session::Session;
use header::Header;
use std::io::{Read, Write};
use stream::Hashed;

const MAGIC: [u8; 8] = *b"weft-kv\n";

/// Version of the format.
const VERSION: u32 = 2;

/// Bytes of a header at most: two million tokens, or a note of many pages.
const HEADER_BYTES: u32 = 64 << 20;

impl Model {
    /// SHA-256 of the file's header, of its tensors' names and shapes, and of samples of their data: what a snapshot knows it by.
    ///
    /// # Errors
    /// A file that can no longer be read.
    pub fn digest(&self) -> Result<[u8; 32], Error> {
        if let Some(known) = self.kept_digest().get() {
            return Ok(*known);
        }
        let digest = digest::digest(self.file())?;
        Ok(*self.kept_digest().get_or_init(|| digest))
    }
}

impl Session {
    /// Bytes of the caller's that a snapshot carries, such as the messages of a conversation.
    #[must_use]
    pub fn note(&self) -> &[u8] {
        &self.memo.note
    }

    /// Sets [`Session::note`].
    pub fn set_note(&mut self, note: impl Into<Vec<u8>>) {
        self.memo.note = note.into();
    }

    /// Writes everything that the session is: tokens, keys and values, how it sampled last, the note, and digests of the model and of
    /// the adapters in force, which are to be the same where it is loaded.
    ///
    /// The generator is keyed by seed and position, so a session that is loaded and goes on with the same parameters says what this
    /// one would have said. For a file, pass the writer of [`gguf::atomic_write`].
    ///
    /// # Errors
    /// [`Error::Snapshot`] when writing fails or the note is too large; what the executor and the model's file give.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn save(&self, out: &mut (impl Write + ?Sized)) -> Result<(), Error> {
        let model = self.model();
        let header = Header {
            architecture: model.summary().architecture.to_string(),
            model: model.digest()?,
            adapters: self.saved_adapters(),
            kv: self.runner.options().kv,
            caches: model.summary().caches.clone(),
            evaluated: self.sequence.evaluated as u32,
            dropped: self.memo.dropped as u32,
            tokens: self.tokens().to_vec(),
            sampling: self.memo.sampling.clone(),
            note: self.memo.note.clone(),
        };
        let bytes = header.encode();
        header_size(bytes.len() as u64)?;
        let mut out = Hashed::new(out);
        out.put(&MAGIC)?;
        out.put(&VERSION.to_le_bytes())?;
        out.put(&(bytes.len() as u32).to_le_bytes())?;
        out.put(&bytes)?;
        out.seal()?;
        let states = &self.runner.states;
        for (n, cache) in header.caches.iter().enumerate() {
            for state in [1 + 2 * n, 2 + 2 * n] {
                let live = header.first(cache)..header.evaluated;
                states.read(states.state(state), 0, live, |rows| Ok::<(), Error>(out.put(rows)?))?;
            }
        }
        Ok(out.seal()?)
    }

    /// Becomes the session that was saved, on any executor; the bytes after it are not read.
    ///
    /// # Errors
    /// [`Error::Snapshot`] for bytes that are no snapshot, of another version, damaged, or of another model, type of cache or adapters;
    /// [`Error::ContextOverflow`] for one that this session's context does not hold; [`Error::TokenId`]; what the executor and the
    /// model's file give. The session stays as it was: everything is checked before anything changes.
    pub fn load(&mut self, input: &mut (impl Read + ?Sized)) -> Result<(), Error> {
        let mut input = Hashed::new(input);
        let header = self.header(&mut input)?;
        let mut rows = vec![];
        for (n, cache) in header.caches.iter().enumerate() {
            let live = header.first(cache)..header.evaluated;
            for state in [1 + 2 * n, 2 + 2 * n] {
                let row = self.runner.states.kind(self.runner.states.state(state)).row_bytes() as u64;
                rows.push((state, live.clone(), input.take("cache", live.len() as u64 * row)?));
            }
        }
        input.check("cache")?;
        let evaluated = header.evaluated as usize;
        self.runner.reserve((evaluated + 1).min(self.context()))?;
        // From here on only a device that goes away fails; what is half written then is not taken for something.
        self.sequence.evaluated = 0;
        let states = &mut self.runner.states;
        for (state, live, bytes) in rows {
            states.write(states.state(state), 0, live, &bytes)?;
        }
        states.write_tokens(states.state(0), 0, 0, &header.tokens[..evaluated]);
        let held = |ring: &Ring| Ring { oldest: evaluated.saturating_sub(ring.window), ..*ring };
        self.sequence.rings = self.sequence.rings.iter().map(held).collect();
        self.sequence.evaluated = evaluated;
        self.sequence.tokens = header.tokens;
        self.memo.dropped = header.dropped as usize;
        (self.memo.sampling, self.memo.note) = (header.sampling, header.note);
        Ok(())
    }

    /// The adapters that keys and values are made with.
    fn saved_adapters(&self) -> Vec<header::Adapter> {
        self.adapters().iter().filter(|applied| applied.scale != 0.0).map(header::Adapter::new).collect()
    }

    /// Reads a header and holds it against this session.
    fn header(&self, input: &mut Hashed<impl Read>) -> Result<Header, Error> {
        input.magic(&MAGIC)?;
        let found = input.u32("version")?;
        if found != VERSION {
            return Err(SnapshotError::Version { found, known: VERSION }.into());
        }
        let bytes = u64::from(input.u32("header")?);
        header_size(bytes)?;
        let bytes = input.take("header", bytes)?;
        input.check("header")?;
        let header = Header::decode(&bytes)?;
        let (model, kv) = (self.model(), self.runner.options().kv);
        let summary = model.summary();
        if header.architecture != summary.architecture {
            return Err(SnapshotError::Architecture { found: header.architecture, expected: summary.architecture }.into());
        }
        if header.model != model.digest()? {
            return Err(SnapshotError::Model.into());
        }
        let adapters = self.saved_adapters();
        if header.adapters != adapters {
            let [found, expected] = [&header.adapters, &adapters].map(|all| all.iter().map(ToString::to_string).collect());
            return Err(SnapshotError::Adapters { found, expected }.into());
        }
        if header.kv != kv {
            return Err(SnapshotError::KvType { found: header.kv, expected: kv }.into());
        }
        if header.caches != summary.caches {
            return Err(SnapshotError::Caches { found: header.caches, expected: summary.caches.clone() }.into());
        }
        known(&header.tokens, summary.vocabulary)?;
        let (needed, limit) = (header.tokens.len(), self.context());
        if needed > limit { Err(Error::ContextOverflow { needed, limit }) } else { Ok(header) }
    }

    /// A second session that holds the same and goes its own way: its cache is copied on the device, row for row.
    ///
    /// # Errors
    /// As [`Model::session`].
    pub fn fork(&self) -> Result<Self, Error> {
        let runner = self.runner.fork(self.sequence.evaluated)?;
        Ok(Self { runner, sequence: self.sequence.clone(), memo: self.memo.clone(), cancel: Default::default() })
    }
}

fn header_size(found: u64) -> Result<(), SnapshotError> {
    let limit = u64::from(HEADER_BYTES);
    if found > limit { Err(SnapshotError::Size { part: "header", found, limit }) } else { Ok(()) }
}
