//! The properties of every operation: the tensors that it reads and makes, its cost, and its result
//! on the host.

use crate::graph::host::Host;
use crate::graph::tensor::{Counts, Tensor};
use gguf::BoxFuture;

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

    /// As [`Reference::reference`], with turns for other work of the thread in between. An
    /// operation that takes long implements this, and `reference` by `in_one_turn`.
    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        self.reference(host);
        Box::pin(std::future::ready(()))
    }
}

pub(crate) use crate::platform::in_one_turn;

/// An operation whose parameters tests make wrong. A shape, and a form of the result, is no
/// parameter.
#[cfg(feature = "testing")]
pub trait Parameters: Sized {
    /// For each parameter, its name and the operation with this parameter changed.
    fn wrong(&self) -> Vec<(&'static str, Self)>;
}

/// The value of a parameter.
#[cfg(feature = "testing")]
pub trait Parameter: Sized {
    /// Other values of a parameter with this name. A parameter with several parts names the parts.
    fn wrong(&self, name: &'static str) -> Vec<(&'static str, Self)>;
}

#[cfg(feature = "testing")]
impl Parameter for f32 {
    /// One percent more; from zero, a hundredth.
    fn wrong(&self, name: &'static str) -> Vec<(&'static str, Self)> {
        vec![(name, if *self == 0.0 { 0.01 } else { 1.01 * self })]
    }
}

#[cfg(feature = "testing")]
impl Parameter for bool {
    fn wrong(&self, name: &'static str) -> Vec<(&'static str, Self)> {
        vec![(name, !self)]
    }
}

#[cfg(feature = "testing")]
impl Parameter for u32 {
    /// One less, which stays valid for an index or an offset.
    fn wrong(&self, name: &'static str) -> Vec<(&'static str, Self)> {
        self.checked_sub(1).map(|less| (name, less)).into_iter().collect()
    }
}

/// Names the fields of an operation that are its parameters. An operation without parameters is
/// named alone, so that no operation is forgotten.
macro_rules! parameters {
    ($Op:ident $(: $($field:ident),+)?) => {
        #[cfg(feature = "testing")]
        impl $crate::graph::operation::Parameters for $Op {
            fn wrong(&self) -> Vec<(&'static str, Self)> {
                let all: Vec<Vec<(&'static str, Self)>> = vec![$($(
                    $crate::graph::operation::Parameter::wrong(&self.$field, stringify!($field))
                        .into_iter()
                        .map(|(name, $field)| (name, Self { $field, ..self.clone() }))
                        .collect()
                ),+)?];
                all.concat()
            }
        }
    };
}
