//! The parts of tiny files that only Gemma models have.

use super::Tiny;
use gguf::GgufBuilder;

/// Positions that a row of a sliding-window layer attends to.
pub const WINDOW: u32 = 8;

impl Tiny {
    /// Layer 0 has a sliding window, layer 1 has full attention.
    pub fn gemma2() -> Self {
        Self { architecture: "gemma2", seed: 3, ..Self::qwen2() }
    }

    /// Two sliding-window layers and one full-attention layer.
    pub fn gemma3() -> Self {
        Self { architecture: "gemma3", layers: 3, seed: 4, ..Self::qwen2() }
    }

    /// Six layers: S F S S with their own keys and values, then F S that share them (S sliding
    /// window, F full attention). Heads of full layers are twice as long. There is a per-layer
    /// embedding.
    pub fn gemma4() -> Self {
        Self { architecture: "gemma4", layers: 6, kv_heads: 1, per_layer: 16, shared: 2, seed: 5, ..Self::qwen2() }
    }

    /// The same with three layers: S F, then S that shares the keys of the first.
    pub fn gemma4_short() -> Self {
        Self { layers: 3, shared: 1, ..Self::gemma4() }
    }

    /// Two layers, S F. In the full layer the keys are also the values, with half as many kv heads.
    pub fn gemma4_dense() -> Self {
        Self { architecture: "gemma4", seed: 6, ..Self::qwen2() }
    }

    /// The same with three of five experts, 32 wide, beside the dense network.
    pub fn gemma4_experts() -> Self {
        Self { experts: 5, seed: 7, ..Self::gemma4_dense() }
    }

    /// The largest difference between two orders of the same f32 sums. A score may be off by half a
    /// unit in its last place, and its softmax weight by as large a fraction. Each layer adds its
    /// part to logits of up to 6. The length of query and key rows comes from their norms; Gemma 4
    /// does not scale scores.
    pub fn rounding(&self) -> f32 {
        const LARGEST_LOGIT: f32 = 6.0;
        const LARGEST_NORM: f32 = 1.2;
        let length = self.head_dim as f32;
        let scale = if self.architecture == "gemma4" { 1.0 } else { 1.0 / length.sqrt() };
        let score = length * LARGEST_NORM * LARGEST_NORM * scale;
        self.layers as f32 * LARGEST_LOGIT * score * f32::EPSILON / 2.0
    }

    /// Whether a layer has a sliding window.
    pub fn slides(&self, l: u32) -> bool {
        match self.architecture {
            "gemma3" => l % 3 != 2,
            _ => [true, false, true, true, false, true][l as usize % 6],
        }
    }

    /// Elements per head of a layer.
    fn head_dim_of(&self, l: u32) -> u32 {
        if self.architecture == "gemma4" && self.slides(l) { self.head_dim / 2 } else { self.head_dim }
    }

    fn kv_heads_of(&self, l: u32) -> u32 {
        if self.keys_are_values(l) { self.kv_heads / 2 } else { self.kv_heads }
    }

    fn keys_are_values(&self, l: u32) -> bool {
        self.architecture == "gemma4" && self.per_layer == 0 && !self.slides(l)
    }

    fn feed_forward_of(&self, l: u32) -> u32 {
        if l + self.shared < self.layers { self.feed_forward } else { 2 * self.feed_forward }
    }

    /// The keys that only Gemma files have, except the arrays. The keys that all architectures have
    /// are added later.
    pub(super) fn gemma_metadata(&self, file: GgufBuilder<'static>) -> GgufBuilder<'static> {
        let key = |name: &str| format!("{}.{name}", self.architecture);
        let windowed = |file: GgufBuilder<'static>| file.set(key("attention.sliding_window"), WINDOW);
        match self.architecture {
            "gemma2" => {
                windowed(file).set(key("attn_logit_softcapping"), 5.0_f32).set(key("final_logit_softcapping"), 6.0_f32)
            }
            "gemma3" => windowed(file)
                .set(key("attention.sliding_window_pattern"), 3_u32)
                .set(key("rope.freq_base_swa"), 1e4_f32),
            "gemma4" => windowed(file)
                .set(
                    key("attention.sliding_window_pattern"),
                    (0..self.layers).map(|l| self.slides(l)).collect::<Vec<_>>(),
                )
                .set(key("attention.shared_kv_layers"), self.shared)
                .set(key("attention.key_length_swa"), self.head_dim / 2)
                .set(key("attention.value_length_swa"), self.head_dim / 2)
                .set(key("embedding_length_per_layer_input"), self.per_layer)
                .set(key("final_logit_softcapping"), 6.0_f32)
                .set(key("rope.freq_base_swa"), 1e4_f32),
            _ => file,
        }
    }

    /// Sizes that differ between layers. They replace those of [`Tiny::metadata`].
    pub(super) fn gemma_arrays(&self, file: GgufBuilder<'static>) -> GgufBuilder<'static> {
        if self.architecture != "gemma4" {
            return file;
        }
        let of = |f: &dyn Fn(&Self, u32) -> u32| (0..self.layers).map(|l| f(self, l) as i32).collect::<Vec<_>>();
        file.set("gemma4.feed_forward_length", of(&Self::feed_forward_of))
            .set("gemma4.attention.head_count_kv", of(&Self::kv_heads_of))
    }

    /// Names and shapes [rows, columns] of the tensors. For vectors, rows is 0.
    pub(super) fn gemma_tensors(&self) -> Vec<(String, u32, u32)> {
        let (d, p) = (self.embedding, self.per_layer);
        let mut all = vec![("token_embd.weight".to_string(), super::VOCABULARY, d)];
        if self.architecture == "gemma4" {
            all.push(("rope_freqs.weight".to_string(), 0, self.head_dim / 2));
        }
        if p > 0 {
            all.push(("per_layer_token_embd.weight".to_string(), super::VOCABULARY, self.layers * p));
            all.push(("per_layer_model_proj.weight".to_string(), self.layers * p, d));
            all.push(("per_layer_proj_norm.weight".to_string(), 0, p));
        }
        for l in 0..self.layers {
            let (dim, f) = (self.head_dim_of(l), self.feed_forward_of(l));
            let (q, kv) = (self.heads * dim, self.kv_heads_of(l) * dim);
            let (owns, normed) = (l + self.shared < self.layers, self.architecture != "gemma2");
            let mut add = |name: &str, rows, cols| all.push((format!("blk.{l}.{name}.weight"), rows, cols));
            let mut add_if = |there: bool, name: &str, rows, cols| {
                if there {
                    add(name, rows, cols)
                }
            };
            add_if(true, "attn_norm", 0, d);
            add_if(true, "attn_q", q, d);
            add_if(owns, "attn_k", kv, d);
            add_if(owns && !self.keys_are_values(l), "attn_v", kv, d);
            add_if(normed, "attn_q_norm", 0, dim);
            add_if(normed && owns, "attn_k_norm", 0, dim);
            add_if(true, "attn_output", d, q);
            add_if(true, "post_attention_norm", 0, d);
            add_if(true, "ffn_norm", 0, d);
            add_if(true, "ffn_gate", f, d);
            add_if(true, "ffn_up", f, d);
            add_if(true, "ffn_down", d, f);
            add_if(true, "post_ffw_norm", 0, d);
            add_if(p > 0, "inp_gate", p, d);
            add_if(p > 0, "proj", d, p);
            add_if(p > 0, "post_norm", 0, d);
            add_if(self.architecture == "gemma4", "layer_output_scale", 0, 1);
            if self.experts > 0 {
                let (e, narrow) = (self.experts, self.feed_forward / 3);
                let mut add = |name: &str, rows, cols| all.push((format!("blk.{l}.{name}"), rows, cols));
                add("ffn_gate_inp.weight", e, d);
                add("ffn_gate_inp.scale", 0, d);
                add("ffn_gate_up_exps.weight", 2 * e * narrow, d);
                add("ffn_down_exps.weight", e * d, narrow);
                add("ffn_down_exps.scale", 0, e);
                add("post_ffw_norm_1.weight", 0, d);
                add("pre_ffw_norm_2.weight", 0, d);
                add("post_ffw_norm_2.weight", 0, d);
            }
        }
        all.push(("output_norm.weight".to_string(), 0, d));
        if !self.tied {
            all.push(("output.weight".to_string(), super::VOCABULARY, d));
        }
        all
    }
}
