//! Operations on elements, on rows of tables, and sums of tensors.

oracles! {
    add;
    add_weighted: add_weighted, RowWeights;
    add_weighted_backward;
    add_weighted_backward_c;
    dropout;
    gather_rows;
    gather_rows_backward;
    geglu;
    geglu_backward;
    gelu;
    gelu_backward;
    join_columns;
    mul;
    mul_sigmoid;
    mul_sigmoid_backward;
    relu;
    relu_backward;
    scale;
    silu;
    silu_backward;
    softcap;
    softcap_backward;
    swiglu;
    swiglu_backward;
    threefry: threefry2x32;
}
