//! Saving, restoring and forking sessions.
//!
//! A snapshot is a magic word, the version (u32), the header's length (u32), the header
//! (`snapshot/header.rs`), a checksum, the rows of the caches, and a second checksum. For each
//! cache, the rows of its keys come first, then the rows of its values, in the cache's own type. A
//! cache with a window has only the rows that the last and the next row attend to. Each checksum is
//! the SHA-256 of all bytes before it.

mod digest;
mod error;
mod header;
mod stream;

pub use error::SnapshotError;

use crate::error::Error;
use crate::file::ModelFile;
use crate::model::Model;
use crate::sequence::{Ring, known};
use crate::session::Session;
use header::Header;
use std::io::{Read, Write};
use std::ops::Range;
use stream::Hashed;

const MAGIC: [u8; 8] = *b"weft-kv\n";

/// Version of the format.
const VERSION: u32 = 2;

/// Upper limit of the header's bytes: enough for two million tokens and a note of many pages.
const HEADER_BYTES: u32 = 64 << 20;

impl ModelFile {
    /// The ranges of the tensors that [`Model::digest`] reads, in the order of the file: for a host
    /// that keeps them while it loads the weights.
    #[must_use]
    pub fn digest_ranges(&self) -> Vec<Range<u64>> {
        digest::ranges(self.file())
    }
}

impl Model {
    /// SHA-256 of the file's header, of its tensors' names and shapes, and of samples of their
    /// data; also of the base if it is not as stored. A snapshot identifies the model by it.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn digest(&self) -> Result<[u8; 32], Error> {
        if let Some(known) = self.kept_digest().get() {
            return Ok(*known);
        }
        let digest = digest::digest(self.file(), self.base())?;
        Ok(*self.kept_digest().get_or_init(|| digest))
    }
}

impl Session {
    /// Bytes that the caller stores in a snapshot, such as the messages of a conversation.
    #[must_use]
    pub fn note(&self) -> &[u8] {
        &self.memo.note
    }

    /// Sets [`Session::note`].
    pub fn set_note(&mut self, note: impl Into<Vec<u8>>) {
        self.memo.note = note.into();
    }

    /// Writes the state of the session: tokens, keys and values, the last sampling parameters, the
    /// note, and digests of the model and of the active adapters. The session that loads it must
    /// have the same model and adapters. If the device was lost, the snapshot has no keys and
    /// values, and the session that loads it evaluates the tokens again.
    ///
    /// The random generator is keyed by seed and position. So a loaded session that continues with
    /// the same parameters gives the same answer as this one. For a file, pass the writer of
    /// [`gguf::atomic_write`].
    ///
    /// # Errors
    /// [`Error::Snapshot`] if writing fails or the note is too large; errors of the executor and of
    /// the model's file.
    pub async fn save_async(&self, out: &mut (impl Write + ?Sized)) -> Result<(), Error> {
        let model = self.model();
        let evaluated = if model.executor().is_lost() { 0 } else { self.sequence.evaluated };
        let header = Header {
            architecture: model.summary().architecture.to_string(),
            model: model.digest()?,
            adapters: self.saved_adapters(),
            kv: self.runner.options().kv,
            caches: model.summary().caches.clone(),
            evaluated: evaluated as u32,
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
                states.read_async(states.state(state), 0, live, |rows| Ok::<(), Error>(out.put(rows)?)).await?;
            }
        }
        Ok(out.seal()?)
    }

    /// Replaces this session's state with a saved one, on any executor. Bytes after the snapshot
    /// are not read.
    ///
    /// # Errors
    /// [`Error::Snapshot`] if the bytes are not a snapshot, are damaged, have another version, or
    /// belong to another model, cache type or adapters. [`Error::ContextOverflow`] if this
    /// session's context is too short; [`Error::TokenId`]; errors of the executor and of the
    /// model's file. Everything is checked before anything changes, so on an error the session
    /// stays as before.
    pub async fn load_async(&mut self, input: &mut (impl Read + ?Sized)) -> Result<(), Error> {
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
        self.runner.reserve((evaluated + 1).min(self.context())).await?;
        // From here on only a lost device can fail. With 0 evaluated positions, rows written in
        // part are not used.
        self.sequence.evaluated = 0;
        let states = &mut self.runner.states;
        for (state, live, bytes) in rows {
            states.write_async(states.state(state), 0, live, &bytes).await?;
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

    /// The active adapters, which change keys and values.
    fn saved_adapters(&self) -> Vec<header::Adapter> {
        self.adapters().iter().filter(|applied| applied.scale != 0.0).map(header::Adapter::new).collect()
    }

    /// Reads a header and compares it with this session.
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
            return Err(
                SnapshotError::Architecture { found: header.architecture, expected: summary.architecture }.into()
            );
        }
        if header.model != model.digest()? {
            return Err(SnapshotError::Model.into());
        }
        let adapters = self.saved_adapters();
        if header.adapters != adapters {
            let [found, expected] =
                [&header.adapters, &adapters].map(|all| all.iter().map(ToString::to_string).collect());
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

    /// A second, independent session with the same state. Its cache is copied row by row on the
    /// device.
    ///
    /// # Errors
    /// As [`Model::session_async`].
    pub async fn fork_async(&self) -> Result<Self, Error> {
        let runner = self.runner.fork(self.sequence.evaluated).await?;
        Ok(Self { runner, sequence: self.sequence.clone(), memo: self.memo.clone(), cancel: Default::default() })
    }
}

fn header_size(found: u64) -> Result<(), SnapshotError> {
    let limit = u64::from(HEADER_BYTES);
    if found > limit { Err(SnapshotError::Size { part: "header", found, limit }) } else { Ok(()) }
}
