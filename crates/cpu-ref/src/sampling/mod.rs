//! From logits to ids.

oracles! {
    argmax;
    penalize;
    sample: sample, SampleSpec;
    sample_threshold;
    top_k;
}
