//! Products with weights, of one row and of many, and the ladder that chooses among their kernels.

oracles! {
    embed;
    embed_backward;
    matmul;
    matmul_input: add_matmul_input, matmul_input;
    matmul_vec;
    matmul_weight;
}
