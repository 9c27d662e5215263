//! Operations on elements, on rows of tables, and sums of tensors.

/// The one list of the family.
macro_rules! elementwise {
    ($then:ident! $($with:tt)*) => {
        $then! { $($with)* elementwise
            operations {
                add: Add { Term, add_bias } [ADD] add_case,
                add_weighted: AddWeighted { MOST as MAX_WEIGHTED, RowWeights } [ADD_WEIGHTED] add_weighted_case,
                dropout: Dropout [DROPOUT] dropout_case,
                gather_rows: GatherRows [GATHER_ROWS] gather_rows_case,
                geglu: Geglu { geglu_columns } [GEGLU] geglu_case,
                gelu: Gelu [GELU] gelu_case,
                mul: Mul { Factor, mul_row } [MUL] mul_case,
                mul_sigmoid: MulSigmoid [MUL_SIGMOID] mul_sigmoid_case,
                relu: Relu [RELU] relu_case,
                scale: Scale [SCALE] scale_case,
                silu: Silu [SILU] silu_case,
                softcap: Softcap [SOFTCAP] softcap_case,
                swiglu: Swiglu [SWIGLU] swiglu_case,
            }
            derivatives {
                add_weighted_backward: AddWeightedBackward [ADD_WEIGHTED_BACKWARD] add_weighted_backward_case,
                add_weighted_backward_c: AddWeightedBackwardC [ADD_WEIGHTED_BACKWARD_C],
                gather_rows_backward: GatherRowsBackward [GATHER_ROWS_BACKWARD] gather_rows_backward_case,
                geglu_backward: GegluBackward [GEGLU_BACKWARD] geglu_backward_case,
                gelu_backward: GeluBackward [GELU_BACKWARD] gelu_backward_case,
                join_columns: JoinColumns [JOIN_COLUMNS] join_columns_case,
                join_rows: JoinRows [],
                mul_sigmoid_backward: MulSigmoidBackward [MUL_SIGMOID_BACKWARD] mul_sigmoid_backward_case,
                relu_backward: ReluBackward [RELU_BACKWARD] relu_backward_case,
                silu_backward: SiluBackward [SILU_BACKWARD] silu_backward_case,
                softcap_backward: SoftcapBackward [SOFTCAP_BACKWARD] softcap_backward_case,
                swiglu_backward: SwigluBackward [SWIGLU_BACKWARD] swiglu_backward_case,
            }
            primitives {}
            fused {}
            kernels {}
            modules {}
            cases {}
        }
    };
}

pub(crate) use elementwise as list;

elementwise! { family! }
