//! The names of weights that adapters may change: ours, and those of PEFT and of transformers.

/// The linear layers of a block that adapters may change: our names and PEFT's.
pub(super) const LINEARS: [(&str, &str); 14] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
    // The embedding per layer of Gemma 3n and Gemma 4 E.
    ("inp_gate", "per_layer_input_gate"),
    ("proj", "per_layer_projection"),
    // Gemma 3n.
    ("laurel_l", "laurel.linear_left"),
    ("laurel_r", "laurel.linear_right"),
    ("altup_router", "altup.modality_router"),
    ("altup_predict_coef", "altup.prediction_coefs"),
    ("altup_correct_coef", "altup.correction_coefs"),
];

/// The linear layer before the blocks that adapters may change: it makes the embedding per layer of
/// Gemma 3n and Gemma 4 E. Our name and PEFT's.
pub(super) const BEFORE_BLOCKS: (&str, &str) = ("per_layer_model_proj.weight", "per_layer_model_projection");

/// Modules of transformers beside the text model: towers for images and sounds, and the projectors
/// behind them.
const TOWERS: [&str; 12] = [
    "vision_tower",
    "vision_model",
    "vision_encoder",
    "vision_embedder",
    "visual",
    "audio_tower",
    "audio_model",
    "audio_encoder",
    "embed_vision",
    "embed_audio",
    "multi_modal_projector",
    "mm_projector",
];

/// The embedding table, whose factors change look-ups only.
pub const EMBEDDING: &str = "token_embd.weight";

/// The output matrix, whose factors change logits only. A file may leave it out; the model then
/// reads the embedding table in its place.
pub const OUTPUT: &str = "output.weight";

/// Whether a module of transformers is one of a tower or a projector.
pub(super) fn is_tower(module: &str) -> bool {
    module.split('.').any(|part| TOWERS.contains(&part))
}

/// Whether a module within the text model is a linear layer of transformers that takes no factors
/// in this version: an expert, a router, a shared expert, or a projection of the streams of Gemma
/// 3n.
pub(super) fn takes_none(module: &str) -> bool {
    let of_block = |module: &str| {
        let (number, rest) = module.strip_prefix("layers.")?.split_once('.')?;
        let rest = rest.strip_prefix("mlp.").unwrap_or(rest);
        let begins = ["experts.", "shared_expert."].iter().any(|name| rest.starts_with(name));
        Some(layer(number).is_some() && (begins || ["gate", "shared_expert_gate", "router.proj"].contains(&rest)))
    };
    let streams = ["altup_projections.", "altup_unembed_projections."];
    let of_stream = |name: &str| module.strip_prefix(name).is_some_and(|number| layer(number).is_some());
    streams.into_iter().any(of_stream) || of_block(module).unwrap_or(false)
}

/// The names of [`LINEARS`], for messages.
pub(super) fn names() -> String {
    LINEARS.map(|(ours, _)| ours).join(", ")
}

/// The number of a layer; `None` for other spellings, such as leading zeros.
pub(super) fn layer(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n: &u32| n.to_string() == text)
}

/// Whether a weight of ours is a linear layer that adapters may change.
pub(super) fn is_linear(target: &str) -> bool {
    let in_block = |target: &str| {
        let (number, ours) = target.strip_prefix("blk.")?.strip_suffix(".weight")?.split_once('.')?;
        Some(layer(number).is_some() && LINEARS.iter().any(|(known, _)| *known == ours))
    };
    target == BEFORE_BLOCKS.0 || in_block(target).unwrap_or(false)
}

/// The layer whose keys or values a weight of ours makes.
pub(super) fn keys_of(target: &str) -> Option<u32> {
    let (number, ours) = target.strip_prefix("blk.")?.split_once('.')?;
    layer(number).filter(|_| ["attn_k.weight", "attn_v.weight"].contains(&ours))
}

/// Our name of a linear layer, by its module within the text model: the inverse of
/// [`peft_module`].
pub(super) fn linear_of(module: &str) -> Option<String> {
    match module {
        "lm_head" => return Some(OUTPUT.to_string()),
        _ if module == BEFORE_BLOCKS.1 => return Some(BEFORE_BLOCKS.0.to_string()),
        _ => {}
    }
    let (number, linear) = module.strip_prefix("layers.")?.split_once('.')?;
    let (ours, _) = LINEARS.iter().find(|(_, theirs)| *theirs == linear)?;
    Some(format!("blk.{}.{ours}.weight", layer(number)?))
}

/// The module of transformers that a weight of ours belongs to, where `prefix` is the text model's:
/// `model.layers.0.self_attn.q_proj` for `blk.0.attn_q.weight`. `None` for a weight that takes no
/// factors.
#[must_use]
pub fn peft_module(prefix: &str, target: &str) -> Option<String> {
    match target {
        EMBEDDING => return Some(format!("{prefix}.embed_tokens")),
        OUTPUT => return Some("lm_head".to_string()),
        _ if target == BEFORE_BLOCKS.0 => return Some(format!("{prefix}.{}", BEFORE_BLOCKS.1)),
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
    for (ours, sides) in
        [(".lora_a", ["lora_A.weight", "lora_embedding_B"]), (".lora_b", ["lora_B.weight", "lora_embedding_A"])]
    {
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
