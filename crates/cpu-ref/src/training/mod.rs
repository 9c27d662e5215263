//! The loss, sums over rows, and the optimizer.

oracles! {
    adamw: adamw, AdamwSpec, AdamwStep, Adapted;
    column_sum;
    count_step;
    cross_entropy;
    cross_entropy_backward;
    rms_norm_weight_backward;
    sum_squares;
}
