//! Checkpoints: the whole state of a trainer in one file, to go on with the same bits.
//!
//! The file is of safetensors. Its tensors are `p.NAME`, `m.NAME` and `v.NAME` for every parameter
//! and its moments, f32, as they lie in memory, and at the end `sha256`, the digest of all bytes
//! before it. The key `weft` of its metadata is a JSON object.

mod base;
mod difference;
mod error;
mod facts;
mod layout;

pub use base::BaseDigest;
pub use difference::{Difference, Facts};
pub use error::CheckpointError;

use crate::error::Error;
use crate::schedule::Schedule;
use crate::tally::Tally;
use crate::trainer::Trainer;
use layout::{DIGEST_BYTES, Head, Header, Layout};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// What a checkpoint says beside the state of the trainer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The position in the data that the caller kept with the checkpoint.
    pub position: String,
    /// Whether it is of version 1, which has a digest of samples of the model: 768 bytes of every
    /// tensor were compared, and not all.
    pub is_sampled: bool,
}

/// Bytes that are read and hashed at a time.
const CHUNK_BYTES: usize = 1 << 20;

impl Trainer {
    /// Writes a checkpoint. `facts` must be the same when the run goes on; `position` is kept for
    /// the caller.
    ///
    /// # Errors
    /// [`Error::File`], and errors of the device.
    pub async fn write_checkpoint_async(
        &self,
        mut out: impl Write,
        facts: &Facts,
        position: &str,
    ) -> Result<(), Error> {
        let mut all = self.facts()?;
        all.extend(facts.clone());
        let head = Head { tally: self.tally, facts: all, position: position.to_string() };
        let (states, kept) = (&self.gradients.states, self.gradients.parameters.kept());
        let header = Layout::of(&kept).header(&head);
        let mut hash = Sha256::new();
        let mut write = |bytes: &[u8]| {
            hash.update(bytes);
            written(out.write_all(bytes))
        };
        write(&header)?;
        for (_, n, words) in &kept {
            let (state, mut left) = (states.state(*n), 4 * *words as usize);
            let of_tensor = |piece: &[u8]| {
                let piece = &piece[..piece.len().min(left)];
                left -= piece.len();
                write(piece)
            };
            states.read_async(state, 0, 0..states.rows(state), of_tensor).await?;
        }
        let digest: [u8; DIGEST_BYTES] = hash.finalize().into();
        written(out.write_all(&digest).and_then(|()| out.flush()))
    }

    /// Takes the state of a checkpoint. A checkpoint that is refused changes nothing.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] with the reason: a file that was cut short or altered, that is no
    /// checkpoint or one of a newer version, or whose facts differ.
    pub fn restore(&mut self, from: &dyn gguf::Source, facts: &Facts) -> Result<Restored, CheckpointError> {
        let header = Header::read(from)?;
        let (head, is_sampled) = (&header.head, header.version == 1);
        let expected = if is_sampled { self.facts_of_version_1() } else { self.facts() };
        let mut expected = expected.map_err(|error| CheckpointError::Base { reason: error.to_string() })?;
        expected.extend(facts.clone());
        let mut kept = head.facts.clone();
        // A constant rate does not depend on the number of steps, so such a run may become longer.
        if self.options.rate.schedule == Schedule::Constant {
            [&mut kept, &mut expected].into_iter().for_each(|facts| drop(facts.remove("steps")));
        }
        let differences = difference::differences(&kept, &expected);
        if !differences.is_empty() {
            return Err(CheckpointError::Differs { differences });
        }
        let kept = self.gradients.parameters.kept();
        Layout::of(&kept).check(&header, from.len_bytes())?;
        check_digest(from)?;
        let (states, mut at) = (&mut self.gradients.states, header.bytes);
        let mut bytes = vec![0; CHUNK_BYTES];
        for (_, n, words) in &kept {
            let state = states.state(*n);
            for first in (0..*words).step_by(CHUNK_BYTES / 4) {
                let piece = &mut bytes[..4 * (*words - first).min(CHUNK_BYTES as u32 / 4) as usize];
                from.read_at(at, piece).map_err(|error| CheckpointError::Read { error })?;
                let words: Vec<u32> =
                    piece.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
                states.write_words(state, first, &words);
                at += piece.len() as u64;
            }
        }
        self.tally = header.head.tally;
        Ok(Restored { position: header.head.position, is_sampled })
    }
}

fn written(result: io::Result<()>) -> Result<(), Error> {
    result.map_err(|error| gguf::Error::Write { error }.into())
}

/// Compares the digest at the end of a file with its bytes.
fn check_digest(from: &dyn gguf::Source) -> Result<(), CheckpointError> {
    let end = from.len_bytes() - DIGEST_BYTES as u64;
    let (mut hash, mut bytes) = (Sha256::new(), vec![0; CHUNK_BYTES]);
    let read = |at: u64, bytes: &mut [u8]| from.read_at(at, bytes).map_err(|error| CheckpointError::Read { error });
    for at in (0..end).step_by(CHUNK_BYTES) {
        let piece = &mut bytes[..(end - at).min(CHUNK_BYTES as u64) as usize];
        read(at, piece)?;
        hash.update(&*piece);
    }
    let mut kept = [0; DIGEST_BYTES];
    read(end, &mut kept)?;
    if hash.finalize().as_slice() == kept { Ok(()) } else { Err(CheckpointError::Altered) }
}

impl Tally {
    fn to_json(self) -> serde_json::Value {
        let Self { steps, updates, skipped, skipped_in_a_row } = self;
        serde_json::json!({ "steps": steps, "updates": updates, "skipped": skipped, "skipped_in_a_row": skipped_in_a_row })
    }

    fn from_json(value: &serde_json::Value) -> Option<Self> {
        let number = |key: &str| value[key].as_u64();
        let small = |key: &str| number(key).and_then(|n| u32::try_from(n).ok());
        let (updates, skipped_in_a_row) = (small("updates")?, small("skipped_in_a_row")?);
        Some(Self { steps: number("steps")?, updates, skipped: number("skipped")?, skipped_in_a_row })
    }
}
