//! The properties of every operation: the tensors that it reads and makes, its cost, and its result
//! on the host.

use crate::graph::host::Host;
use crate::graph::tensor::{Counts, Tensor};

/// The tensors that an operation reads and makes.
#[derive(Clone, Debug, Default)]
pub struct Io {
    pub reads: Vec<Tensor>,
    pub writes: Vec<Tensor>,
}

/// The cost of an operation: its arithmetic operations, and the smallest number of bytes that it
/// must move.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub flops: u64,
    pub bytes: u64,
    /// The part of `bytes` that is weights.
    pub weight_bytes: u64,
}

impl Work {
    /// The share of one of `n` equal dispatches.
    #[must_use]
    pub fn divided(self, n: u64) -> Self {
        let n = n.max(1);
        Self { flops: self.flops / n, bytes: self.bytes / n, weight_bytes: self.weight_bytes / n }
    }

    /// The sum of two costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            flops: self.flops + other.flops,
            bytes: self.bytes + other.bytes,
            weight_bytes: self.weight_bytes + other.weight_bytes,
        }
    }
}

/// An operation of a recording or of a plan.
pub trait Operation {
    /// The tensors that the operation reads and makes.
    fn io(&self) -> Io;
    /// The cost with these row counts. The default moves every tensor once and counts no
    /// arithmetic.
    fn work(&self, counts: Counts) -> Work {
        let io = self.io();
        let bytes = |t: &Tensor| 4 * u64::from(t.shape.rows_at(counts)) * u64::from(t.shape.width());
        Work { bytes: io.reads.iter().chain(&io.writes).map(bytes).sum(), ..Work::default() }
    }
}

/// An operation with an oracle.
pub trait Reference: Operation {
    /// Computes the operation through its oracle in `cpu-ref`.
    fn reference(&self, host: &mut Host<'_>);
}
