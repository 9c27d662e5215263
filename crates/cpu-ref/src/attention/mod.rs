//! Attention over a cache or over the rows of a step, and the ladder of its kernels.

oracles! {
    attention: attention, AttentionSpec, Mask;
    attention_backward_kv: attention_backward_kv, attention_backward_kv_rounded;
    attention_backward_q: attention_backward_q, attention_backward_q_rounded;
    attention_delta;
    attention_flash: attention_flash, FlashTiles, round_f16;
    attention_lse;
    kv_append: kv_append, KvType, kv_read;
}
