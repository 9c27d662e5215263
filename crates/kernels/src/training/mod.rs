//! The loss, sums over rows, and the optimizer.

/// The one list of the family.
macro_rules! training {
    ($then:ident! $($with:tt)*) => {
        $then! { $($with)* training
            operations {}
            derivatives {
                adamw: Adamw { Moments, adamw_step } [ADAMW] adamw_case,
                column_sum: ColumnSum [COLUMN_SUM] column_sum_case,
                count_step: CountStep [COUNT_STEP],
                cross_entropy: CrossEntropy [CROSS_ENTROPY] cross_entropy_case,
                cross_entropy_backward: CrossEntropyBackward [CROSS_ENTROPY_BACKWARD],
                rms_norm_weight_backward: RmsNormWeightBackward
                    [RMS_NORM_WEIGHT_BACKWARD] rms_norm_weight_backward_case,
                sum_squares: SumSquares [SUM_SQUARES] sum_squares_case,
            }
            primitives {}
            fused {}
            kernels {}
            modules {}
            cases {}
        }
    };
}

pub(crate) use training as list;

training! { family! }
