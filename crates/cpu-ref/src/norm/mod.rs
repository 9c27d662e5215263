//! Norms, softmax and rotations, and what packs activations for products.

oracles! {
    gaussian_top_k;
    gaussian_top_k_backward;
    layer_norm;
    layer_norm_backward;
    level_f16;
    log_prob;
    log_softmax;
    log_softmax_backward;
    match_rms;
    match_rms_backward;
    pack_f16: pack_f16, pack_f16_as_is, unpack_f16;
    pack_q8: pack_q8, near_ties, norm_pack_q8, unpack_q8;
    rms_norm;
    rms_norm_backward;
    rope: rope, RopeSpec, rope_frequencies, rope_rows;
    rope_backward;
    softmax;
    softmax_backward;
}
