//! The operations of derivatives: a loss, and for an operation of the forward pass the derivative
//! of the loss by its operands, from the derivative by its result. Like those of the forward pass,
//! each has a file with its dispatcher, its oracle and its kernel.

pub(crate) mod attention_backward_kv;
pub(crate) mod attention_backward_q;
pub(crate) mod attention_delta;
pub(crate) mod attention_lse;
pub(crate) mod cross_entropy;
pub(crate) mod cross_entropy_backward;
pub(crate) mod gather_rows_backward;
pub(crate) mod geglu_backward;
pub(crate) mod join_columns;
pub(crate) mod join_rows;
pub(crate) mod matmul_input;
pub(crate) mod matmul_weight;
pub(crate) mod rms_norm_backward;
pub(crate) mod rope_backward;
pub(crate) mod softcap_backward;
pub(crate) mod swiglu_backward;

use super::Op;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::tensor::{Counts, Lead, Shape};
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};
pub use attention_backward_kv::attention_backward_kv;
pub use attention_backward_q::attention_backward_q;
pub use attention_delta::attention_delta;
pub use attention_lse::{Attended, attention_lse};
pub use cross_entropy::cross_entropy;
pub use cross_entropy_backward::cross_entropy_backward;
pub use gather_rows_backward::gather_rows_backward;
pub use geglu_backward::geglu_backward;
pub use join_columns::join_columns;
pub use join_rows::join_rows;
pub use matmul_input::matmul_input;
pub use matmul_weight::matmul_weight;
pub use rms_norm_backward::rms_norm_backward;
pub use rope_backward::rope_backward;
pub use softcap_backward::softcap_backward;
pub use swiglu_backward::swiglu_backward;

/// Passes the operations of derivatives, as `file::Name, ..`, to a macro.
macro_rules! each_backward {
    ($macro:ident) => {
        $macro! {
            attention_backward_kv::AttentionBackwardKv,
            attention_backward_q::AttentionBackwardQ,
            attention_delta::AttentionDelta,
            attention_lse::AttentionLse,
            cross_entropy::CrossEntropy,
            cross_entropy_backward::CrossEntropyBackward,
            gather_rows_backward::GatherRowsBackward,
            geglu_backward::GegluBackward,
            join_columns::JoinColumns,
            join_rows::JoinRows,
            matmul_input::MatmulInput,
            matmul_weight::MatmulWeight,
            rms_norm_backward::RmsNormBackward,
            rope_backward::RopeBackward,
            softcap_backward::SoftcapBackward,
            swiglu_backward::SwigluBackward,
        }
    };
}

macro_rules! language {
    ($($file:ident :: $name:ident,)*) => {
        /// Every operation of derivatives.
        #[derive(Clone, Debug)]
        pub enum Backward { $($name($file::$name)),* }

        $(pub use $file::$name;

        impl From<$file::$name> for Op {
            fn from(op: $file::$name) -> Self { Self::Backward(Backward::$name(op)) }
        })*

        impl Backward {
            /// The name of the function that records the operation.
            #[must_use]
            pub fn name(&self) -> &'static str { match self { $(Self::$name(_) => stringify!($file)),* } }
        }

        impl Operation for Backward {
            fn io(&self) -> Io { match self { $(Self::$name(op) => op.io()),* } }
            fn work(&self, counts: Counts) -> Work { match self { $(Self::$name(op) => op.work(counts)),* } }
        }

        impl Reference for Backward {
            fn reference(&self, host: &mut Host<'_>) { match self { $(Self::$name(op) => op.reference(host)),* } }
        }

        impl Lowering for Backward {
            fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> { match self { $(Self::$name(op) => op.lower(cx)),* } }
        }
    };
}

pub(crate) use each_backward;

each_backward!(language);

/// How a kernel that sums over rows counts them: the number in `step_rows`, and the first row.
pub(crate) fn counted(shape: Shape) -> (u32, u32) {
    match shape.lead {
        Lead::Step => (0, 0),
        Lead::Out => (1, 0),
        Lead::OutFrom(first) => (1, first),
        Lead::Fixed => panic!("a sum over the rows of {shape:?}, which no step counts"),
    }
}
