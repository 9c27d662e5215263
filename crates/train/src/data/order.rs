//! The order of examples in each epoch, in no memory.

/// The order of `len` examples in one epoch: a permutation, or as they stand.
#[derive(Copy, Clone, Debug)]
pub struct Order {}

impl Order {
    /// The examples as they stand.
    #[must_use]
    pub fn given(len: u64) -> Self {
        todo!()
    }

    /// A permutation that depends on the seed and the epoch only.
    #[must_use]
    pub fn shuffled(len: u64, seed: u64, epoch: u64) -> Self {
        todo!()
    }

    /// The example at a position below `len`.
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        todo!()
    }
}
