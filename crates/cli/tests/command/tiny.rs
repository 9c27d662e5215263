//! A tiny Qwen3 model with random weights, whose tokens are bytes.

use gguf::GgufBuilder;
use std::path::PathBuf;

/// The number of tokens: the 256 bytes, and `ab`.
pub const VOCABULARY: usize = 257;
const D: u64 = 32;

/// The model file. Weights are random from -`scale` to `scale`; a scale of 0 makes all logits 0.
pub fn builder(scale: f32) -> GgufBuilder<'static> {
    of_width(D, scale)
}

/// The same with rows of `d` elements between its layers, two heads of half of it, and twice as
/// many in the feed-forward network.
pub fn of_width(d: u64, scale: f32) -> GgufBuilder<'static> {
    let (head, ff) = (d / 2, 2 * d);
    let file = metadata(d);
    let mut state = 1u32;
    let mut values = |count: u64| -> Vec<f32> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state as f32 / u32::MAX as f32 * 2.0 - 1.0) * scale
        };
        (0..count).map(|_| next()).collect()
    };
    let ones = |count: u64| vec![1.0; count as usize];
    let mut file = file.tensor_f32("token_embd.weight", &[d, VOCABULARY as u64], &values(d * VOCABULARY as u64));
    for layer in 0..2 {
        let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
        for (tensor, len) in [("attn_norm", d), ("attn_q_norm", head), ("attn_k_norm", head), ("ffn_norm", d)] {
            file = file.tensor_f32(name(tensor), &[len], &ones(len));
        }
        let matrices = [
            ("attn_q", d, 2 * head),
            ("attn_k", d, head),
            ("attn_v", d, head),
            ("attn_output", 2 * head, d),
            ("ffn_gate", d, ff),
            ("ffn_up", d, ff),
            ("ffn_down", ff, d),
        ];
        for (tensor, cols, rows) in matrices {
            file = file.tensor_f32(name(tensor), &[cols, rows], &values(cols * rows));
        }
    }
    file.tensor_f32("output_norm.weight", &[d], &ones(d))
}

fn metadata(d: u64) -> GgufBuilder<'static> {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    let mut tokens: Vec<String> = (0..=255).map(|byte| spell(byte).to_string()).collect();
    tokens.push("ab".into());
    GgufBuilder::new()
        .set("general.architecture", "qwen3")
        .set("qwen3.block_count", 2u32)
        .set("qwen3.context_length", 1u32 << 20)
        .set("qwen3.embedding_length", d as u32)
        .set("qwen3.feed_forward_length", 2 * d as u32)
        .set("qwen3.attention.head_count", 2u32)
        .set("qwen3.attention.head_count_kv", 1u32)
        .set("qwen3.attention.key_length", d as u32 / 2)
        .set("qwen3.attention.layer_norm_rms_epsilon", 1e-6f32)
        .set("tokenizer.ggml.model", "gpt2")
        .set("tokenizer.ggml.pre", "qwen2")
        .set("tokenizer.ggml.token_type", vec![1i32; VOCABULARY])
        .set("tokenizer.ggml.tokens", tokens)
        .set("tokenizer.ggml.merges", vec!["a b"])
}

/// A model file in a temporary folder, which is removed when this is dropped.
pub struct Model {
    pub folder: tempfile::TempDir,
    path: PathBuf,
}

impl Model {
    pub fn new(file: &GgufBuilder<'_>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tiny.gguf");
        file.save(&path).expect("a valid file");
        Self { folder, path }
    }

    /// The path as an argument.
    pub fn path(&self) -> &str {
        self.path.to_str().expect("a path of text")
    }

    /// A path beside the model.
    pub fn beside(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("a path of text").to_string()
    }
}
