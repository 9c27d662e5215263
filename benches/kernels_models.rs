//! The shapes that are timed.

use gguf::GgmlType;

/// Shapes of a published model, and the types of its matrices, the most common first.
pub struct Model {
    pub name: &'static str,
    pub embedding: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    pub ffn: u32,
    pub vocabulary: u32,
    pub types: &'static [GgmlType],
    pub gelu: bool,
    pub softcap: Option<f32>,
    pub family: Family,
}

/// The parts of a layer besides the products that all models have.
#[derive(Copy, Clone)]
pub enum Family {
    /// Biases of queries, keys and values.
    Qwen2,
    /// Norms of heads.
    Qwen3,
    /// Norms of heads and of values, norms after attention and after the feed-forward part, and an
    /// embedding per layer. Some layers have a window of `window` keys; the others have no window,
    /// and heads of `global_dim` elements.
    Gemma4 { window: usize, global_dim: u32, per_layer: u32 },
}

const Q4_K_M: &[GgmlType] = &[GgmlType::Q4_K, GgmlType::Q6_K];

/// The models, the smallest first.
pub const MODELS: [Model; 4] = [
    Model {
        name: "qwen3-0.6b",
        embedding: 1024,
        heads: 16,
        kv_heads: 8,
        head_dim: 128,
        ffn: 3072,
        vocabulary: 151_936,
        types: &[GgmlType::Q8_0, GgmlType::Q4_0, GgmlType::F16],
        gelu: false,
        softcap: None,
        family: Family::Qwen3,
    },
    Model {
        name: "qwen2.5-1.5b",
        embedding: 1536,
        heads: 12,
        kv_heads: 2,
        head_dim: 128,
        ffn: 8960,
        vocabulary: 151_936,
        types: Q4_K_M,
        gelu: false,
        softcap: None,
        family: Family::Qwen2,
    },
    Model {
        name: "gemma4-e2b",
        embedding: 1536,
        heads: 8,
        kv_heads: 1,
        head_dim: 256,
        ffn: 6144,
        vocabulary: 262_144,
        types: Q4_K_M,
        gelu: true,
        softcap: None,
        family: Family::Gemma4 { window: 512, global_dim: 512, per_layer: 256 },
    },
    Model {
        name: "qwen3-8b",
        embedding: 4096,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        ffn: 12_288,
        vocabulary: 151_936,
        types: Q4_K_M,
        gelu: false,
        softcap: None,
        family: Family::Qwen3,
    },
];

/// Shapes whose layers use other kernels than the four models: heads of 64, heads of 128 and of 512
/// that share no keys, a softcap, and a GELU of few columns without a norm before it.
pub const OTHERS: [Model; 3] = [
    Model {
        name: "qwen2.5-0.5b",
        embedding: 896,
        heads: 14,
        kv_heads: 2,
        head_dim: 64,
        ffn: 4864,
        vocabulary: 151_936,
        types: &[GgmlType::Q8_0],
        gelu: false,
        softcap: None,
        family: Family::Qwen2,
    },
    Model {
        name: "8 heads of 128",
        embedding: 1024,
        heads: 8,
        kv_heads: 8,
        head_dim: 128,
        ffn: 3072,
        vocabulary: 151_936,
        types: &[GgmlType::Q8_0],
        gelu: true,
        softcap: None,
        family: Family::Qwen3,
    },
    Model {
        name: "2 heads of 512",
        embedding: 1024,
        heads: 2,
        kv_heads: 2,
        head_dim: 512,
        ffn: 3072,
        vocabulary: 151_936,
        types: &[GgmlType::Q8_0],
        gelu: true,
        softcap: Some(50.0),
        family: Family::Qwen3,
    },
];
