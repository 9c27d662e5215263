//! A digest of all bytes of the model that a run trains over.

use crate::hex::hex;
use gguf::{Gguf, TensorInfo};
use model::ModelFile;
use sha2::{Digest, Sha256};
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

    /// The digests, or why the file cannot be read.
    pub(super) fn get(&self) -> Result<&Digests, &String> {
        let compute = || digests(self.0.file.file()).map_err(|error| error.to_string());
        self.0.digests.get_or_init(compute).as_ref()
    }
}

fn digests(file: &Gguf) -> gguf::Result<Digests> {
    // A tensor of an unknown type has no size.
    let tensors = || file.tensors().iter().filter(|tensor| tensor.ty().is_ok());
    let pieces: Vec<(&TensorInfo, u64)> = tensors()
        .flat_map(|tensor| (0..tensor.bytes).step_by(PIECE_BYTES as usize).map(move |at| (tensor, at)))
        .collect();
    let mut weights = Sha256::new();
    hashes(file, &pieces)?.iter().for_each(|hash| weights.update(hash.to_le_bytes()));
    Ok(Digests { metadata: hex(&metadata(file)?), weights: hex(&weights.finalize()) })
}

/// The hashes of pieces, in their order.
fn hashes(file: &Gguf, pieces: &[(&TensorInfo, u64)]) -> gguf::Result<Vec<u128>> {
    let hash = |bytes: &mut Vec<u8>, &(tensor, at): &(&TensorInfo, u64)| {
        bytes.resize((tensor.bytes - at).min(PIECE_BYTES) as usize, 0);
        file.read_tensor(tensor, at, bytes)?;
        Ok(XxHash3_128::oneshot(bytes))
    };
    #[cfg(not(target_arch = "wasm32"))]
    {
        use rayon::prelude::*;
        pieces.par_iter().map_init(Vec::new, hash).collect()
    }
    #[cfg(target_arch = "wasm32")]
    {
        let mut bytes = vec![];
        pieces.iter().map(|piece| hash(&mut bytes, piece)).collect()
    }
}

fn metadata(file: &Gguf) -> gguf::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let end = file.tensors().iter().map(|tensor| tensor.offset).min().unwrap_or(0);
    let mut buffer = vec![0; CHUNK_BYTES as usize];
    for offset in (0..end).step_by(CHUNK_BYTES as usize) {
        let bytes = &mut buffer[..(end - offset).min(CHUNK_BYTES) as usize];
        let len = bytes.len();
        file.source().read_at(offset, bytes).map_err(|error| gguf::Error::Read { offset, len, error })?;
        hash.update(&*bytes);
    }
    for tensor in file.tensors() {
        hash.update((tensor.name().len() as u64).to_le_bytes());
        hash.update(tensor.name());
        tensor
            .dims
            .iter()
            .chain([&u64::from(tensor.ty_number), &tensor.bytes])
            .for_each(|n| hash.update(n.to_le_bytes()));
    }
    Ok(hash.finalize().into())
}
