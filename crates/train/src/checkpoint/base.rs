//! A digest of all bytes of the model that a run trains over.

use crate::hex::hex;
use crate::host;
use gguf::{Gguf, TensorInfo};
use model::ModelFile;
use sha2::{Digest, Sha256};
use std::io;
use std::ops::{AsyncFnMut, Range};
use std::sync::{Arc, OnceLock};
use twox_hash::XxHash3_128;

/// Bytes that are hashed at a time, by one thread.
const PIECE_BYTES: u64 = 4 << 20;

/// Bytes of the header that are read at a time.
const CHUNK_BYTES: u64 = 256 << 10;

/// The digest of a model file, which is computed once, by the first that asks.
///
/// A session's snapshot has the digest of samples of the weights ([`model::Model::digest`]),
/// because it should load fast. Training holds the run to every byte: a checkpoint over other
/// weights would go on without a sign of it.
#[derive(Clone)]
pub struct BaseDigest(Arc<Lazy>);

struct Lazy {
    file: ModelFile,
    digests: OnceLock<Result<Digests, String>>,
}

/// What a checkpoint keeps of a model, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digests {
    /// SHA-256 of the header's bytes (of a split file, of its first part), and of every tensor's
    /// name, shape, type and size.
    pub metadata: String,
    /// SHA-256 of the XXH3 hashes (128 bits) of the pieces of every tensor.
    pub weights: String,
}

impl BaseDigest {
    /// The digest of a file. Nothing is read yet.
    #[must_use]
    pub fn of(file: &ModelFile) -> Self {
        Self(Arc::new(Lazy { file: file.clone(), digests: OnceLock::new() }))
    }

    /// The digest of a file, which a thread begins to compute: beside the reading of the weights it
    /// costs little, because both read the same pages.
    #[must_use]
    pub fn begin(file: &ModelFile) -> Self {
        let this = Self::of(file);
        #[cfg(not(target_arch = "wasm32"))]
        {
            let thread = this.clone();
            // Without a thread, the first that asks computes it.
            let _ = std::thread::Builder::new().name("digest".to_string()).spawn(move || {
                let _ = thread.get();
            });
        }
        this
    }

    /// The digest of a file whose bytes are awaited, because its source does not hold all of them.
    /// `read` fills a buffer with the bytes from an offset on, by rising offsets, 4 MiB at most.
    ///
    /// # Errors
    /// Errors of `read`.
    pub async fn read_async(
        file: &ModelFile,
        mut read: impl AsyncFnMut(u64, &mut [u8]) -> io::Result<()>,
    ) -> Result<Self, gguf::Error> {
        let (gguf, mut bytes) = (file.file(), vec![]);
        let mut metadata = Sha256::new();
        for range in header(gguf) {
            read_into(&mut bytes, range, &mut read).await?;
            metadata.update(&bytes);
        }
        shapes(gguf, &mut metadata);
        let mut weights = Sha256::new();
        for (tensor, range) in pieces(gguf) {
            read_into(&mut bytes, tensor.offset + range.start..tensor.offset + range.end, &mut read).await?;
            weights.update(XxHash3_128::oneshot(&bytes).to_le_bytes());
        }
        let digests = Digests { metadata: hex(&metadata.finalize()), weights: hex(&weights.finalize()) };
        Ok(Self(Arc::new(Lazy { file: file.clone(), digests: Ok(digests).into() })))
    }

    /// The digests, or why the file cannot be read.
    pub(super) fn get(&self) -> Result<&Digests, &String> {
        let compute = || digests(self.0.file.file()).map_err(|error| error.to_string());
        self.0.digests.get_or_init(compute).as_ref()
    }
}

async fn read_into(
    bytes: &mut Vec<u8>,
    range: Range<u64>,
    read: &mut impl AsyncFnMut(u64, &mut [u8]) -> io::Result<()>,
) -> Result<(), gguf::Error> {
    let (offset, len) = (range.start, (range.end - range.start) as usize);
    bytes.resize(len, 0);
    read(offset, bytes).await.map_err(|error| gguf::Error::Read { offset, len, error })
}

fn digests(file: &Gguf) -> gguf::Result<Digests> {
    let (mut weights, pieces) = (Sha256::new(), pieces(file).collect::<Vec<_>>());
    hashes(file, &pieces)?.iter().for_each(|hash| weights.update(hash.to_le_bytes()));
    Ok(Digests { metadata: hex(&metadata(file)?), weights: hex(&weights.finalize()) })
}

/// The pieces of all tensors, as ranges of bytes of each. A tensor of an unknown type has no size.
fn pieces<'a>(file: &'a Gguf) -> impl Iterator<Item = (&'a TensorInfo, Range<u64>)> {
    let of_tensor = |tensor: &'a TensorInfo| ranges(tensor.bytes, PIECE_BYTES).map(move |range| (tensor, range));
    file.tensors().iter().filter(|tensor| tensor.ty().is_ok()).flat_map(of_tensor)
}

/// The hashes of pieces, in their order.
fn hashes(file: &Gguf, pieces: &[(&TensorInfo, Range<u64>)]) -> gguf::Result<Vec<u128>> {
    let hash = |bytes: &mut Vec<u8>, (tensor, range): &(&TensorInfo, Range<u64>)| {
        bytes.resize((range.end - range.start) as usize, 0);
        file.read_tensor(tensor, range.start, bytes)?;
        Ok(XxHash3_128::oneshot(bytes))
    };
    host::map(pieces.to_vec(), Vec::new, |bytes, piece| hash(bytes, &piece))
}

/// Ranges of so many bytes, the last of which may have fewer.
fn ranges(end: u64, step: u64) -> impl Iterator<Item = Range<u64>> {
    (0..end).step_by(step as usize).map(move |at| at..end.min(at + step))
}

/// The ranges of the bytes before the first tensor.
fn header(file: &Gguf) -> impl Iterator<Item = Range<u64>> {
    ranges(file.tensors().iter().map(|tensor| tensor.offset).min().unwrap_or(0), CHUNK_BYTES)
}

fn metadata(file: &Gguf) -> gguf::Result<[u8; 32]> {
    let (mut hash, mut bytes) = (Sha256::new(), vec![]);
    for range in header(file) {
        let (offset, len) = (range.start, (range.end - range.start) as usize);
        bytes.resize(len, 0);
        file.source().read_at(offset, &mut bytes).map_err(|error| gguf::Error::Read { offset, len, error })?;
        hash.update(&bytes);
    }
    shapes(file, &mut hash);
    Ok(hash.finalize().into())
}

/// Adds every tensor's name, shape, type and size.
fn shapes(file: &Gguf, hash: &mut Sha256) {
    for tensor in file.tensors() {
        hash.update((tensor.name().len() as u64).to_le_bytes());
        hash.update(tensor.name());
        tensor
            .dims
            .iter()
            .chain([&u64::from(tensor.ty_number), &tensor.bytes])
            .for_each(|n| hash.update(n.to_le_bytes()));
    }
}
