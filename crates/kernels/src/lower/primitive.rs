//! Operations with an oracle: the recorded ones, and those that plans add to round activations.

use super::attention::attention_flash::AttentionFlash;
use super::attention::tile32::Tile32;
use super::matmul::matmul_input_tile128::MatmulInputTile128;
use super::matmul::matmul_tile64_experts::MatmulTile64Experts;
use super::matmul::matmul_vec_q8_experts::MatmulVecQ8Experts;
use super::matmul::matmul_weight_tile128::MatmulWeightTile128;
use super::matmul::product::Product;
use super::pack::gather_slots::GatherSlots;
use super::pack::level_f16::LevelF16;
use super::pack::pack_f16::PackF16;
use super::pack::pack_q8::PackQ8;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::tensor::Counts;
use crate::ops;
use crate::ops::backward::{self, each_backward};
use crate::ops::{Op, each_op};

/// An operation with an oracle. Plans are made of these, and parity cases record any of them.
#[derive(Clone, Debug)]
pub enum Primitive {
    Op(Op),
    Product(Product),
    PackQ8(PackQ8),
    PackF16(PackF16),
    LevelF16(LevelF16),
    GatherSlots(GatherSlots),
    MatmulInputTile128(MatmulInputTile128),
    MatmulWeightTile128(MatmulWeightTile128),
    MatmulTile64Experts(MatmulTile64Experts),
    MatmulVecQ8Experts(MatmulVecQ8Experts),
    AttentionFlash(AttentionFlash),
    Tile32(Tile32),
}

impl Primitive {
    /// The name of the function that records the operation.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Op(op) => op.name(),
            Self::Product(_) => "matmul",
            Self::PackQ8(_) => "pack_q8",
            Self::PackF16(_) => "pack_f16",
            Self::LevelF16(_) => "level_f16",
            Self::GatherSlots(_) => "gather_slots",
            Self::MatmulInputTile128(_) => "matmul_input",
            Self::MatmulWeightTile128(_) => "matmul_weight",
            Self::MatmulTile64Experts(_) | Self::MatmulVecQ8Experts(_) => "matmul_experts",
            Self::AttentionFlash(_) => "attention",
            Self::Tile32(op) => op.name(),
        }
    }
}

impl Operation for Primitive {
    fn io(&self) -> Io {
        match self {
            Self::Op(op) => op.io(),
            Self::Product(op) => op.io(),
            Self::PackQ8(op) => op.io(),
            Self::PackF16(op) => op.io(),
            Self::LevelF16(op) => op.io(),
            Self::GatherSlots(op) => op.io(),
            Self::MatmulInputTile128(op) => op.io(),
            Self::MatmulWeightTile128(op) => op.io(),
            Self::MatmulTile64Experts(op) => op.io(),
            Self::MatmulVecQ8Experts(op) => op.io(),
            Self::AttentionFlash(op) => op.io(),
            Self::Tile32(op) => op.io(),
        }
    }

    fn work(&self, counts: Counts) -> Work {
        match self {
            Self::Op(op) => op.work(counts),
            Self::Product(op) => op.work(counts),
            Self::PackQ8(op) => op.work(counts),
            Self::PackF16(op) => op.work(counts),
            Self::LevelF16(op) => op.work(counts),
            Self::GatherSlots(op) => op.work(counts),
            Self::MatmulInputTile128(op) => op.work(counts),
            Self::MatmulWeightTile128(op) => op.work(counts),
            Self::MatmulTile64Experts(op) => op.work(counts),
            Self::MatmulVecQ8Experts(op) => op.work(counts),
            Self::AttentionFlash(op) => op.work(counts),
            Self::Tile32(op) => op.work(counts),
        }
    }
}

impl Reference for Primitive {
    fn reference(&self, host: &mut Host<'_>) {
        match self {
            Self::Op(op) => op.reference(host),
            Self::Product(op) => op.reference(host),
            Self::PackQ8(op) => op.reference(host),
            Self::PackF16(op) => op.reference(host),
            Self::LevelF16(op) => op.reference(host),
            Self::GatherSlots(op) => op.reference(host),
            Self::MatmulInputTile128(op) => op.reference(host),
            Self::MatmulWeightTile128(op) => op.reference(host),
            Self::MatmulTile64Experts(op) => op.reference(host),
            Self::MatmulVecQ8Experts(op) => op.reference(host),
            Self::AttentionFlash(op) => op.reference(host),
            Self::Tile32(op) => op.reference(host),
        }
    }
}

impl From<Op> for Primitive {
    fn from(op: Op) -> Self {
        Self::Op(op)
    }
}

macro_rules! from_ops {
    ($($file:ident :: $name:ident,)*) => {
        $(impl From<ops::$file::$name> for Primitive {
            fn from(op: ops::$file::$name) -> Self {
                Self::Op(op.into())
            }
        })*
    };
}

each_op!(from_ops);

macro_rules! from_backward {
    ($($file:ident :: $name:ident,)*) => {
        $(impl From<backward::$file::$name> for Primitive {
            fn from(op: backward::$file::$name) -> Self {
                Self::Op(op.into())
            }
        })*
    };
}

each_backward!(from_backward);

macro_rules! from {
    ($($name:ident),*) => {
        $(impl From<$name> for Primitive {
            fn from(op: $name) -> Self {
                Self::$name(op)
            }
        })*
    };
}

from!(
    Product,
    PackQ8,
    PackF16,
    LevelF16,
    GatherSlots,
    MatmulInputTile128,
    MatmulWeightTile128,
    MatmulTile64Experts,
    MatmulVecQ8Experts,
    AttentionFlash,
    Tile32
);
