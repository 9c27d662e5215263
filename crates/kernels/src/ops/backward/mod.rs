//! The operations of training: a loss, for an operation of the forward pass the derivative of the
//! loss by its operands, from the derivative by its result, and the step of an optimizer. Like
//! those of the forward pass, each has a file with its dispatcher, its oracle and its kernel.

pub(crate) mod adamw;
pub(crate) mod add_weighted_backward;
pub(crate) mod add_weighted_backward_c;
pub(crate) mod attention_backward_kv;
pub(crate) mod attention_backward_q;
pub(crate) mod attention_delta;
pub(crate) mod attention_lse;
pub(crate) mod column_sum;
pub(crate) mod combine_experts_backward;
pub(crate) mod count_step;
pub(crate) mod cross_entropy;
pub(crate) mod cross_entropy_backward;
pub(crate) mod embed_backward;
pub(crate) mod gather_rows_backward;
pub(crate) mod gaussian_top_k_backward;
pub(crate) mod geglu_backward;
pub(crate) mod gelu_backward;
pub(crate) mod join_columns;
pub(crate) mod join_rows;
pub(crate) mod log_softmax_backward;
pub(crate) mod match_rms_backward;
pub(crate) mod matmul_experts_input;
pub(crate) mod matmul_input;
pub(crate) mod matmul_vec_experts_input;
pub(crate) mod matmul_weight;
pub(crate) mod mul_sigmoid_backward;
pub(crate) mod rms_norm_backward;
pub(crate) mod rms_norm_weight_backward;
pub(crate) mod rope_backward;
pub(crate) mod route_backward;
pub(crate) mod silu_backward;
pub(crate) mod softcap_backward;
pub(crate) mod softmax_backward;
pub(crate) mod sum_slots;
pub(crate) mod sum_squares;
pub(crate) mod swiglu_backward;

use super::Op;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::tensor::{Counts, Lead, Shape};
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};
pub use adamw::{Moments, adamw, adamw_step};
pub use add_weighted_backward::add_weighted_backward;
pub use add_weighted_backward_c::add_weighted_backward_c;
pub use attention_backward_kv::attention_backward_kv;
pub use attention_backward_q::attention_backward_q;
pub use attention_delta::attention_delta;
pub use attention_lse::{Attended, attention_lse};
pub use column_sum::column_sum;
pub use combine_experts_backward::combine_experts_backward;
pub use count_step::count_step;
pub use cpu_ref::AdamwSpec;
pub use cross_entropy::cross_entropy;
pub use cross_entropy_backward::cross_entropy_backward;
pub use embed_backward::embed_backward;
pub use gather_rows_backward::gather_rows_backward;
pub use gaussian_top_k_backward::gaussian_top_k_backward;
pub use geglu_backward::geglu_backward;
pub use gelu_backward::gelu_backward;
pub use join_columns::join_columns;
pub use join_rows::join_rows;
pub use log_softmax_backward::log_softmax_backward;
pub use match_rms_backward::match_rms_backward;
pub use matmul_experts_input::matmul_experts_input;
pub use matmul_input::{matmul_input, matmul_input_exact};
pub use matmul_weight::{matmul_weight, matmul_weight_exact};
pub use mul_sigmoid_backward::mul_sigmoid_backward;
pub use rms_norm_backward::rms_norm_backward;
pub use rms_norm_weight_backward::rms_norm_weight_backward;
pub use rope_backward::rope_backward;
pub use route_backward::route_backward;
pub use silu_backward::silu_backward;
pub use softcap_backward::softcap_backward;
pub use softmax_backward::softmax_backward;
pub use sum_slots::sum_slots;
pub use sum_squares::sum_squares;
pub use swiglu_backward::swiglu_backward;

/// Passes the operations of derivatives, as `file::Name, ..`, to a macro.
macro_rules! each_backward {
    ($macro:ident) => {
        $macro! {
            adamw::Adamw,
            add_weighted_backward::AddWeightedBackward,
            add_weighted_backward_c::AddWeightedBackwardC,
            attention_backward_kv::AttentionBackwardKv,
            attention_backward_q::AttentionBackwardQ,
            attention_delta::AttentionDelta,
            attention_lse::AttentionLse,
            column_sum::ColumnSum,
            combine_experts_backward::CombineExpertsBackward,
            count_step::CountStep,
            cross_entropy::CrossEntropy,
            cross_entropy_backward::CrossEntropyBackward,
            embed_backward::EmbedBackward,
            gather_rows_backward::GatherRowsBackward,
            gaussian_top_k_backward::GaussianTopKBackward,
            geglu_backward::GegluBackward,
            gelu_backward::GeluBackward,
            join_columns::JoinColumns,
            join_rows::JoinRows,
            log_softmax_backward::LogSoftmaxBackward,
            match_rms_backward::MatchRmsBackward,
            matmul_experts_input::MatmulExpertsInput,
            matmul_input::MatmulInput,
            matmul_weight::MatmulWeight,
            mul_sigmoid_backward::MulSigmoidBackward,
            rms_norm_backward::RmsNormBackward,
            rms_norm_weight_backward::RmsNormWeightBackward,
            rope_backward::RopeBackward,
            route_backward::RouteBackward,
            silu_backward::SiluBackward,
            softcap_backward::SoftcapBackward,
            softmax_backward::SoftmaxBackward,
            sum_slots::SumSlots,
            sum_squares::SumSquares,
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
