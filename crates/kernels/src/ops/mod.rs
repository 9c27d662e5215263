//! The operations that a recording may hold. Each has a file with its dispatcher, its oracle and
//! its kernel.

pub(crate) mod add;
pub(crate) mod add_weighted;
pub(crate) mod argmax;
pub(crate) mod attention;
pub mod backward;
pub(crate) mod combine_experts;
pub(crate) mod dropout;
pub(crate) mod embed;
pub(crate) mod gather_rows;
pub(crate) mod gaussian_top_k;
pub(crate) mod geglu;
pub(crate) mod gelu;
pub(crate) mod group_experts;
pub(crate) mod kv_append;
pub(crate) mod log_softmax;
pub(crate) mod match_rms;
pub(crate) mod matmul;
pub(crate) mod matmul_experts;
pub(crate) mod matmul_vec_experts;
pub(crate) mod mul;
pub(crate) mod mul_sigmoid;
pub(crate) mod penalize;
pub(crate) mod rms_norm;
pub(crate) mod rope;
pub(crate) mod route;
pub(crate) mod sample;
pub(crate) mod sample_scan;
pub(crate) mod scale;
pub(crate) mod silu;
pub(crate) mod softcap;
pub(crate) mod softmax;
pub(crate) mod swiglu;
pub(crate) mod top_k;
mod values;

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::record;
use crate::graph::tensor::Counts;
pub use add::{Term, add, add_bias};
pub use add_weighted::{MOST as MAX_WEIGHTED, RowWeights, add_weighted};
pub use argmax::argmax;
pub use attention::{Attend, Keys, MAX_HEAD_DIM, attention};
pub use combine_experts::combine_experts;
pub use dropout::dropout;
pub use embed::{Ids, embed};
pub use gather_rows::gather_rows;
pub use gaussian_top_k::gaussian_top_k;
pub use geglu::{geglu, geglu_columns};
pub use gelu::gelu;
pub use group_experts::group_experts;
pub use kv_append::kv_append;
pub use log_softmax::log_softmax;
pub use match_rms::match_rms;
pub use matmul::{matmul, matmul_exact};
pub use matmul_experts::matmul_experts;
pub use mul::{Factor, mul, mul_row};
pub use mul_sigmoid::mul_sigmoid;
pub use penalize::penalize;
pub use rms_norm::rms_norm;
pub use rope::rope;
pub use route::{MAX_EXPERTS, Routes, route};
pub use sample::sample;
pub use scale::scale;
pub use silu::silu;
pub use softcap::softcap;
pub use softmax::softmax;
pub use swiglu::swiglu;
pub use top_k::{MAX_K, top_k};

/// Passes the operations that may be recorded, as `file::Name, ..`, to a macro.
macro_rules! each_op {
    ($macro:ident) => {
        $macro! {
            embed::Embed,
            rms_norm::RmsNorm,
            matmul::Matmul,
            rope::Rope,
            kv_append::KvAppend,
            attention::Attention,
            add::Add,
            add_weighted::AddWeighted,
            match_rms::MatchRms,
            gaussian_top_k::GaussianTopK,
            mul::Mul,
            scale::Scale,
            softcap::Softcap,
            silu::Silu,
            gelu::Gelu,
            swiglu::Swiglu,
            geglu::Geglu,
            softmax::Softmax,
            log_softmax::LogSoftmax,
            gather_rows::GatherRows,
            argmax::Argmax,
            top_k::TopK,
            route::Route,
            group_experts::GroupExperts,
            matmul_experts::MatmulExperts,
            combine_experts::CombineExperts,
            mul_sigmoid::MulSigmoid,
            penalize::Penalize,
            sample::Sample,
            dropout::Dropout,
        }
    };
}

pub(crate) use each_op;

macro_rules! language {
    ($($file:ident :: $name:ident,)*) => {
        /// Every operation that may be recorded.
        #[derive(Clone, Debug)]
        pub enum Op {
            $($name($file::$name),)*
            /// An operation of a derivative.
            Backward(backward::Backward),
        }

        $(pub use $file::$name;

        impl From<$file::$name> for Op {
            fn from(op: $file::$name) -> Self { Self::$name(op) }
        })*

        impl Op {
            /// The name of the function that records the operation.
            #[must_use]
            pub fn name(&self) -> &'static str { match self { $(Self::$name(_) => stringify!($file),)* Self::Backward(op) => op.name() } }
        }

        impl Operation for Op {
            fn io(&self) -> Io { match self { $(Self::$name(op) => op.io(),)* Self::Backward(op) => op.io() } }
            fn work(&self, counts: Counts) -> Work { match self { $(Self::$name(op) => op.work(counts),)* Self::Backward(op) => op.work(counts) } }
        }

        impl Reference for Op {
            fn reference(&self, host: &mut Host<'_>) { match self { $(Self::$name(op) => op.reference(host),)* Self::Backward(op) => op.reference(host) } }
        }
    };
}

each_op!(language);

/// A recording of one step of a model.
pub type Recorder = record::Recorder<Op>;

impl Recorder {
    /// Whether rows choose experts. The rows of a step then do not share all weights.
    #[must_use]
    pub fn chooses_experts(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.op, Op::Route(_)))
    }
}
