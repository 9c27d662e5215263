//! The kernels of recorded operations.

use super::matmul::product::Product;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};
use crate::ops::Op;

impl Lowering for Op {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        match self {
            Self::Matmul(op) => Product::from(op).lower(cx),
            Self::Attention(op) => op.lower(cx),
            Self::Embed(op) => op.lower(cx),
            Self::RmsNorm(op) => op.lower(cx),
            Self::Rope(op) => op.lower(cx),
            Self::KvAppend(op) => op.lower(cx),
            Self::Add(op) => op.lower(cx),
            Self::AddWeighted(op) => op.lower(cx),
            Self::MatchRms(op) => op.lower(cx),
            Self::GaussianTopK(op) => op.lower(cx),
            Self::Mul(op) => op.lower(cx),
            Self::Scale(op) => op.lower(cx),
            Self::Softcap(op) => op.lower(cx),
            Self::Silu(op) => op.lower(cx),
            Self::Gelu(op) => op.lower(cx),
            Self::Swiglu(op) => op.lower(cx),
            Self::Geglu(op) => op.lower(cx),
            Self::Softmax(op) => op.lower(cx),
            Self::LogSoftmax(op) => op.lower(cx),
            Self::GatherRows(op) => op.lower(cx),
            Self::Argmax(op) => op.lower(cx),
            Self::TopK(op) => op.lower(cx),
            Self::Route(op) => op.lower(cx),
            Self::GroupExperts(op) => op.lower(cx),
            Self::MatmulExperts(op) => op.lower(cx),
            Self::CombineExperts(op) => op.lower(cx),
            Self::MulSigmoid(op) => op.lower(cx),
            Self::Penalize(op) => op.lower(cx),
            Self::Sample(op) => op.lower(cx),
            Self::Dropout(op) => op.lower(cx),
            Self::Backward(op) => op.lower(cx),
        }
    }
}
