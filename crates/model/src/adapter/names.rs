//! The names of weights that adapters may change: ours, and those of PEFT and of transformers.

/// The linear layers that adapters may change: our names and PEFT's.
pub(super) const LINEARS: [(&str, &str); 7] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// The embedding table, whose factors change look-ups only.
pub const EMBEDDING: &str = "token_embd.weight";

/// The output matrix, whose factors change logits only. A file may leave it out; the model then
/// reads the embedding table in its place.
pub const OUTPUT: &str = "output.weight";

/// The names of [`LINEARS`], for messages.
pub(super) fn names() -> String {
    LINEARS.map(|(ours, _)| ours).join(", ")
}

/// The number of a layer; `None` for other spellings, such as leading zeros.
pub(super) fn layer(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n: &u32| n.to_string() == text)
}

/// The module of transformers that a weight of ours belongs to, where `prefix` is the text model's:
/// `model.layers.0.self_attn.q_proj` for `blk.0.attn_q.weight`. `None` for a weight that takes no
/// factors.
#[must_use]
pub fn peft_module(prefix: &str, target: &str) -> Option<String> {
    match target {
        EMBEDDING => return Some(format!("{prefix}.embed_tokens")),
        OUTPUT => return Some("lm_head".to_string()),
        _ => {}
    }
    let (layer, ours) = target.strip_prefix("blk.")?.strip_suffix(".weight")?.split_once('.')?;
    let (_, theirs) = LINEARS.iter().find(|(known, _)| *known == ours)?;
    Some(format!("{prefix}.layers.{layer}.{theirs}"))
}

/// The name of a tensor of ours in files of PEFT and of transformers: of a factor
/// (`blk.0.attn_q.weight.lora_a`), or of a weight of this architecture. `None` for a tensor that
/// has no such name.
#[must_use]
pub fn peft_name(architecture: &str, name: &str) -> Option<String> {
    let module = |tensor: &str| {
        let (layer, rest) = tensor.strip_prefix("blk.")?.split_once('.')?;
        let (ours, kind) = rest.rsplit_once('.')?;
        let gemma = architecture.starts_with("gemma");
        let norm = || match ours {
            "attn_norm" => Some("input_layernorm"),
            "ffn_norm" if gemma => Some("pre_feedforward_layernorm"),
            "ffn_norm" => Some("post_attention_layernorm"),
            "post_attention_norm" if gemma => Some("post_attention_layernorm"),
            "post_ffw_norm" if gemma => Some("post_feedforward_layernorm"),
            "attn_q_norm" => Some("self_attn.q_norm"),
            "attn_k_norm" => Some("self_attn.k_norm"),
            _ => None,
        };
        let theirs = LINEARS.iter().find(|(known, _)| *known == ours).map(|(_, theirs)| *theirs).or_else(norm)?;
        Some(format!("model.layers.{layer}.{theirs}.{kind}"))
    };
    for (ours, sides) in [(".lora_a", ["lora_A.weight", "lora_embedding_B"]), (".lora_b", ["lora_B.weight", "lora_embedding_A"])] {
        if let Some(target) = name.strip_suffix(ours) {
            let side = sides[usize::from(target == EMBEDDING)];
            return Some(format!("base_model.model.{}.{side}", peft_module("model", target)?));
        }
    }
    match name {
        "token_embd.weight" => Some("model.embed_tokens.weight".to_string()),
        "output_norm.weight" => Some("model.norm.weight".to_string()),
        "output.weight" => Some("lm_head.weight".to_string()),
        _ => module(name),
    }
}
