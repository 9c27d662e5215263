//! A digest that tells model files apart without reading all their data.

use crate::base::Base;
use crate::samples::{places, sample};
use gguf::{Error, Gguf};
use sha2::{Digest, Sha256};
use std::ops::Range;

/// Bytes of the header that are read at a time.
const CHUNK_BYTES: u64 = 256 << 10;

/// The ranges of the tensors that [`digest`] reads, in the order of the file.
pub(super) fn ranges(file: &Gguf) -> Vec<Range<u64>> {
    let known = file.tensors().iter().filter(|tensor| tensor.ty().is_ok());
    let mut ranges: Vec<Range<u64>> = known
        .flat_map(|tensor| {
            let (offsets, each) = places(tensor.bytes);
            offsets.map(|offset| tensor.offset + offset..tensor.offset + offset + each)
        })
        .collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// SHA-256 of the file's header bytes (of a split file, of its first part), of every tensor's name,
/// shape, type and size, and of three samples of its data; and of a base that is not as stored.
pub(super) fn digest(file: &Gguf, base: Base) -> Result<[u8; 32], Error> {
    let mut hash = Sha256::new();
    let end = file.tensors().iter().map(|tensor| tensor.offset).min().unwrap_or(0);
    let mut buffer = vec![0; CHUNK_BYTES as usize];
    for offset in (0..end).step_by(CHUNK_BYTES as usize) {
        let bytes = &mut buffer[..(end - offset).min(CHUNK_BYTES) as usize];
        let len = bytes.len();
        file.source().read_at(offset, bytes).map_err(|error| Error::Read { offset, len, error })?;
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
        // A tensor of an unknown type has no samples.
        if tensor.ty().is_ok() {
            sample(&mut hash, tensor.bytes, |offset, bytes| file.read_tensor(tensor, offset, bytes))?;
        }
    }
    if let Some(ty) = base.ty() {
        hash.update(format!("base {ty}"));
    }
    Ok(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::{GgmlType, GgufBuilder};

    fn of(name: &str, data: &[u8]) -> [u8; 32] {
        let file = GgufBuilder::new().set("general.architecture", "x").set("general.name", name);
        let file = file.tensor("t", &[data.len() as u64], GgmlType::I8, data.to_vec());
        digest(&Gguf::from_bytes(file.to_bytes().expect("writes")).expect("opens"), Base::AsStored).expect("reads")
    }

    #[test]
    fn a_change_of_the_header_or_of_a_sampled_byte_is_another_file() {
        let data = vec![7; 4096];
        let same = of("a", &data);
        assert_eq!(same, of("a", &data));
        assert_ne!(same, of("b", &data));
        assert_ne!(same, of("a", &data[..4064]));
        for at in [0, 255, 2000, 2100, 3841, 4095] {
            let mut changed = data.clone();
            changed[at] = 8;
            assert_ne!(same, of("a", &changed), "byte {at}");
        }
    }
}
