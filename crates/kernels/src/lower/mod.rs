//! Operations of a plan (recorded ones, and those that the planner makes of several), and the
//! kernels that compute them.

mod all;
pub mod attention;
pub mod matmul;
pub mod norm;
pub mod pack;
pub mod primitive;
mod recorded;

use crate::graph::operation::{Io, Operation, Work};
use crate::graph::record::Stage;
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};
use crate::ops::Op;
pub use all::{kernels, variants};
use attention::tile32::Tile32;
use matmul::matmul_input_tile128::MatmulInputTile128;
use matmul::matmul_tile64_experts::MatmulTile64Experts;
use matmul::matmul_vec_q8_experts::MatmulVecQ8Experts;
use matmul::matmul_weight_tile128::MatmulWeightTile128;
use matmul::product::Product;
use pack::{gather_slots::GatherSlots, level_f16::LevelF16, pack_f16::PackF16, pack_q8::PackQ8};
use primitive::Primitive;

/// One operation of a plan: how a device computes it, and what it computes.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: Lowered,
    /// The operations whose work it does, in order. Their oracles, run in this order, are its
    /// oracle: they round where it rounds.
    pub parts: Vec<Primitive>,
    pub stage: Stage,
}

impl Node {
    /// An operation with a single part.
    pub fn of(part: impl Into<Primitive>, stage: Stage) -> Self {
        let part = part.into();
        Self { op: part.clone().into(), parts: vec![part], stage }
    }
}

macro_rules! lowered {
    ($($family:ident :: $file:ident :: $name:ident,)*) => {
        /// Every operation of a plan.
        #[derive(Clone, Debug)]
        pub enum Lowered {
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
            Tile32(Tile32),
            $($name($family::$file::$name)),*
        }

        $(impl From<$family::$file::$name> for Lowered {
            fn from(op: $family::$file::$name) -> Self { Self::$name(op) }
        })*

        impl Operation for Lowered {
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
                    Self::Tile32(op) => op.io(),
                    $(Self::$name(op) => op.io()),*
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
                    Self::Tile32(op) => op.work(counts),
                    $(Self::$name(op) => op.work(counts)),*
                }
            }
        }

        impl Lowering for Lowered {
            fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
                match self {
                    Self::Op(op) => op.lower(cx),
                    Self::Product(op) => op.lower(cx),
                    Self::PackQ8(op) => op.lower(cx),
                    Self::PackF16(op) => op.lower(cx),
                    Self::LevelF16(op) => op.lower(cx),
                    Self::GatherSlots(op) => op.lower(cx),
                    Self::MatmulInputTile128(op) => op.lower(cx),
                    Self::MatmulWeightTile128(op) => op.lower(cx),
                    Self::MatmulTile64Experts(op) => op.lower(cx),
                    Self::MatmulVecQ8Experts(op) => op.lower(cx),
                    Self::Tile32(op) => op.lower(cx),
                    $(Self::$name(op) => op.lower(cx)),*
                }
            }
        }
    };
}

lowered! {
    norm::norm_pack_q8::NormPackQ8,
    norm::norm_pack_f16::NormPackF16,
    matmul::matmul_tile128_glu::MatmulTile128Glu,
    norm::norm_add::NormAdd,
    pack::glu_pack_q8::GluPackQ8,
    pack::glu_pack_f16::GluPackF16,
    norm::norm_rope::NormRope,
    norm::norm_rope_append::NormRopeAppend,
    norm::norm_rope_heads::NormRopeHeads,
    matmul::product::ProductPair,
    matmul::matmul_tile64_triple::MatmulTile64Triple,
    matmul::matmul_vec_group::MatmulGroup,
    matmul::matmul_vec_glu::MatmulGlu,
    matmul::matmul_vec_norm::MatmulVecNorm,
    matmul::matmul_vec_q8_experts_glu::MatmulExpertsGlu,
    matmul::matmul_vec_q8_experts_sum::MatmulExpertsSum,
    matmul::norm_matmul_vec::NormMatmulVec,
    matmul::norm_matmul_vec_group::NormMatmulVecGroup,
    matmul::norm_matmul_vec_glu::NormMatmulVecGlu,
    matmul::matmul_vec_q8::MatmulVecAdd,
    matmul::norm_pack_matmul_vec::NormPackMatmulVec,
    matmul::norm_pack_matmul_vec_glu::NormPackMatmulVecGlu,
    matmul::norm_add_matmul_vec::NormAddMatmulVec,
    matmul::norm_add_matmul_vec_glu::NormAddMatmulVecGlu,
    matmul::glu_matmul_vec::GluMatmulVec,
    attention::merge_matmul_vec::MergeMatmulVec,
    attention::fused::AttentionSplit,
    attention::attention_merge::AttentionMerge,
    attention::fused::AttentionDecode,
    attention::fused::AttentionDecodeRowsF16,
    attention::fused::AttentionTurn,
    norm::add_rms_norm::AddRmsNorm,
}

impl From<Product> for Lowered {
    fn from(op: Product) -> Self {
        Self::Product(op)
    }
}

impl From<Primitive> for Lowered {
    fn from(part: Primitive) -> Self {
        match part {
            Primitive::Op(Op::Matmul(op)) => Self::Product((&op).into()),
            Primitive::Op(op) => Self::Op(op),
            Primitive::Product(op) => Self::Product(op),
            Primitive::PackQ8(op) => Self::PackQ8(op),
            Primitive::PackF16(op) => Self::PackF16(op),
            Primitive::LevelF16(op) => Self::LevelF16(op),
            Primitive::GatherSlots(op) => Self::GatherSlots(op),
            Primitive::MatmulInputTile128(op) => Self::MatmulInputTile128(op),
            Primitive::MatmulWeightTile128(op) => Self::MatmulWeightTile128(op),
            Primitive::MatmulTile64Experts(op) => Self::MatmulTile64Experts(op),
            Primitive::MatmulVecQ8Experts(op) => Self::MatmulVecQ8Experts(op),
            Primitive::AttentionFlash(flash) => Self::Op(flash.of.into()),
            Primitive::Tile32(op) => Self::Tile32(op),
        }
    }
}
