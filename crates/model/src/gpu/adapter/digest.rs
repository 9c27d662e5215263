//! The digest by which a snapshot identifies an adapter.

use super::{Pair, Side};
use crate::error::Error;
use crate::samples::sample;
use sha2::{Digest, Sha256};

/// SHA-256 of every factor's target, side, shape, type and scale, and of samples of its data. It is
/// the same for both file forms.
pub(super) fn digest(pairs: &[Pair]) -> Result<[u8; 32], Error> {
    let mut hash = Sha256::new();
    for factor in pairs.iter().flat_map(|pair| [&pair.a, &pair.b]) {
        hash.update((factor.target.len() as u64).to_le_bytes());
        hash.update(&factor.target);
        let numbers = [u32::from(factor.side == Side::B), factor.rows, factor.cols, factor.scale.to_bits()];
        numbers.into_iter().for_each(|n| hash.update(n.to_le_bytes()));
        hash.update(factor.ty.name());
        let row = factor.ty.row_bytes(factor.cols as usize).unwrap_or_default() as u64;
        sample(&mut hash, row * u64::from(factor.rows), |offset, bytes| factor.bytes.read(offset, bytes))?;
    }
    Ok(hash.finalize().into())
}
