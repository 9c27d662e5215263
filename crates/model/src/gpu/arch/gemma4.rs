//! Gemma 4: norms before and after each block, q, k and v norms, sliding-window and full-attention
//! layers with different head lengths, keys and values that the last layers share, an embedding per
//! layer, GEGLU.
//! (Hugging Face `Gemma4ForCausalLM`, text part.)

mod experts;

use super::{Architecture, Cache, Head, Logits, Summary, embed_tokens, logits};
use crate::error::Error;
use crate::load::Loader;
use crate::meta::{LENGTHS, Meta};
use cpu_ref::Mask;
use experts::Experts;
use gguf::Gguf;
use kernels::ops::{
    Attend, add, attention, embed, geglu, geglu_columns, kv_append, matmul, mul_row, rms_norm, rope, scale,
};
use kernels::{KvState, Recorder, RopeTable, Tensor, Weight};

struct Config {
    block_count: u32,
    context_length: u32,
    embedding_length: u32,
    /// The feed-forward width of each layer. Some models double the width in layers that share keys
    /// and values.
    feed_forward_length: Vec<u32>,
    /// (query heads, kv heads) per layer.
    heads: Vec<(u32, u32)>,
    /// Elements per head in full-attention layers.
    key_length: u32,
    /// Elements per head in sliding-window layers.
    key_length_swa: u32,
    /// Positions that each layer's rows attend to; `None` for all.
    sliding_window: Vec<Option<u32>>,
    /// For each layer, the layer whose keys and values it uses: itself, or the last layer of the
    /// same kind that has its own.
    donor: Vec<usize>,
    /// Elements of the per-layer embedding for each layer; 0 if the model has no such embedding.
    embedding_length_per_layer_input: u32,
    /// The configuration of the experts, equal in all layers. `None` if the model has no experts.
    experts: Option<experts::Config>,
    final_logit_softcapping: Option<f32>,
    layer_norm_rms_epsilon: f32,
    /// The table of rotations for full-attention layers.
    rope: RopeTable,
    /// The table of rotations for sliding-window layers.
    rope_swa: RopeTable,
}

impl Config {
    fn read(file: &Gguf) -> Result<Self, Error> {
        let meta = Meta { file, architecture: "gemma4" };
        let embedding_length = meta.count("embedding_length", LENGTHS)?;
        let block_count = meta.count("block_count", 1..=1024)?;
        let heads = meta.heads(block_count)?;
        let key_length = meta.head_dim(embedding_length, heads[0].0)?;
        let key_length_swa = meta.head_dim_of("_swa", key_length)?;
        let window = meta.count("attention.sliding_window", 1..=1 << 24)?;
        let slides = meta.sliding(block_count, None)?;
        let donor = meta.donors(&slides, &heads)?;
        Ok(Self {
            block_count,
            context_length: meta.context_length()?,
            embedding_length,
            feed_forward_length: meta.per_layer("feed_forward_length", LENGTHS, block_count)?,
            heads,
            key_length,
            key_length_swa,
            sliding_window: slides.iter().map(|slides| slides.then_some(window)).collect(),
            donor,
            embedding_length_per_layer_input: meta.count_or("embedding_length_per_layer_input", 0..=1 << 16, 0)?,
            experts: experts::Config::read(&meta)?,
            final_logit_softcapping: meta.optional_positive("final_logit_softcapping")?,
            layer_norm_rms_epsilon: meta.positive("attention.layer_norm_rms_epsilon")?,
            rope: meta.rope(key_length, 1e6)?,
            rope_swa: meta.rope_swa(key_length_swa, 1e4)?,
        })
    }

    fn key_length(&self, l: usize) -> u32 {
        if self.sliding_window[l].is_some() { self.key_length_swa } else { self.key_length }
    }
}

/// Weights for the keys and values of a layer that does not share another layer's.
struct KeyValue {
    attn_k: Weight,
    /// If `None`, the values are the keys before norm and rope.
    attn_v: Option<Weight>,
    attn_k_norm: Weight,
}

/// Weights that apply a layer's part of the per-layer embedding.
struct PerLayer {
    inp_gate: Weight,
    proj: Weight,
    post_norm: Weight,
}

struct Layer {
    head_count: u32,
    head_count_kv: u32,
    window: Option<u32>,
    /// Index of the cache that the layer appends to or reads.
    cache: usize,
    attn_norm: Weight,
    attn_q: Weight,
    attn_q_norm: Weight,
    own: Option<KeyValue>,
    attn_output: Weight,
    post_attention_norm: Weight,
    ffn_norm: Weight,
    ffn_gate: Weight,
    ffn_up: Weight,
    ffn_down: Weight,
    experts: Option<Experts>,
    post_ffw_norm: Weight,
    per_layer: Option<PerLayer>,
    layer_output_scale: Weight,
}

impl Layer {
    fn load(c: &Config, l: usize, from: &mut Loader<'_>) -> Result<Self, Error> {
        let (d, f, p) = (c.embedding_length, c.feed_forward_length[l], c.embedding_length_per_layer_input);
        let (donor, key_length) = (c.donor[l], c.key_length(l));
        let (head_count, head_count_kv) = (c.heads[l].0, c.heads[donor].1);
        let (q, kv) = (head_count * key_length, head_count_kv * key_length);
        let name = |tensor: &str| format!("blk.{l}.{tensor}.weight");
        Ok(Self {
            head_count,
            head_count_kv,
            window: c.sliding_window[l],
            cache: donor,
            attn_norm: from.vector(&name("attn_norm"), d)?,
            attn_q: from.matrix(&name("attn_q"), q, d)?,
            attn_q_norm: from.vector(&name("attn_q_norm"), key_length)?,
            own: match donor == l {
                true => Some(KeyValue {
                    attn_k: from.matrix(&name("attn_k"), kv, d)?,
                    attn_v: from.has(&name("attn_v")).then(|| from.matrix(&name("attn_v"), kv, d)).transpose()?,
                    attn_k_norm: from.vector(&name("attn_k_norm"), key_length)?,
                }),
                false => None,
            },
            attn_output: from.matrix(&name("attn_output"), d, q)?,
            post_attention_norm: from.vector(&name("post_attention_norm"), d)?,
            ffn_norm: from.vector(&name("ffn_norm"), d)?,
            ffn_gate: from.matrix(&name("ffn_gate"), f, d)?,
            ffn_up: from.matrix(&name("ffn_up"), f, d)?,
            ffn_down: from.matrix(&name("ffn_down"), d, f)?,
            experts: c.experts.as_ref().map(|e| Experts::load(e, l, d, from)).transpose()?,
            post_ffw_norm: from.vector(&name("post_ffw_norm"), d)?,
            per_layer: match p {
                0 => None,
                _ => Some(PerLayer {
                    inp_gate: from.matrix(&name("inp_gate"), p, d)?,
                    proj: from.matrix(&name("proj"), d, p)?,
                    post_norm: from.vector(&name("post_norm"), d)?,
                }),
            },
            layer_output_scale: from.vector(&name("layer_output_scale"), 1)?,
        })
    }
}

/// The embedding that is split into one part per layer.
struct PerLayerEmbedding {
    per_layer_token_embd: Weight,
    per_layer_model_proj: Weight,
    per_layer_proj_norm: Weight,
}

impl PerLayerEmbedding {
    fn load(c: &Config, vocabulary: u32, from: &mut Loader<'_>) -> Result<Option<Self>, Error> {
        let (d, p) = (c.embedding_length, c.embedding_length_per_layer_input);
        if p == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            per_layer_token_embd: from.matrix("per_layer_token_embd.weight", vocabulary, c.block_count * p)?,
            per_layer_model_proj: from.matrix("per_layer_model_proj.weight", c.block_count * p, d)?,
            per_layer_proj_norm: from.vector("per_layer_proj_norm.weight", p)?,
        }))
    }

    /// [T, L P]: the per-layer embedding of the token plus a projection of its scaled embedding
    /// `h`.
    fn record(&self, rec: &mut Recorder, c: &Config, h: Tensor) -> Tensor {
        let (d, p) = (c.embedding_length as f32, c.embedding_length_per_layer_input as f32);
        let tokens = rec.state(0);
        let token = embed(rec, self.per_layer_token_embd, tokens);
        let token = scale(rec, token, p.sqrt());
        let context = matmul(rec, self.per_layer_model_proj, h).heads(c.block_count); // [T, L, P]
        // RMS norm of context / sqrt(D): a larger epsilon replaces the division.
        let context = rms_norm(rec, context, Some(self.per_layer_proj_norm), d * c.layer_norm_rms_epsilon);
        let both = add(rec, context.flat(), token);
        scale(rec, both, std::f32::consts::FRAC_1_SQRT_2)
    }
}

struct Gemma4 {
    config: Config,
    summary: Summary,
    token_embd: Weight,
    per_layer: Option<PerLayerEmbedding>,
    layers: Vec<Layer>,
    head: Head,
}

pub(super) fn load(file: &Gguf, from: &mut Loader<'_>) -> Result<Box<dyn Architecture>, Error> {
    let mut config = Config::read(file)?;
    if config.sliding_window.contains(&None) {
        // Proportional rope: pairs that are not rotated have a divisor of 1e30.
        config.rope = config.rope.divided(&from.divisors("rope_freqs.weight", config.rope.dim / 2)?);
    }
    let d = config.embedding_length;
    let vocabulary = from.rows("token_embd.weight")?;
    let token_embd = from.matrix("token_embd.weight", vocabulary, d)?;
    let per_layer = PerLayerEmbedding::load(&config, vocabulary, from)?;
    let layers =
        (0..config.block_count as usize).map(|l| Layer::load(&config, l, from)).collect::<Result<Vec<_>, _>>()?;
    let output_norm = from.vector("output_norm.weight", d)?;
    let tied = !from.has("output.weight");
    let output = if tied { token_embd } else { from.matrix("output.weight", vocabulary, d)? };
    let owning = layers.iter().enumerate().filter(|(_, w)| w.own.is_some());
    let head = Head {
        output_norm,
        layer_norm_rms_epsilon: config.layer_norm_rms_epsilon,
        output,
        final_logit_softcapping: config.final_logit_softcapping,
    };
    let summary = Summary {
        architecture: "gemma4",
        block_count: config.block_count,
        context_length: config.context_length,
        embedding_length: d,
        vocabulary,
        caches: owning
            .map(|(l, w)| Cache { width: w.head_count_kv * config.key_length(l), window: w.window })
            .collect(),
    };
    Ok(Box::new(Gemma4 { config, summary, token_embd, per_layer, layers, head }))
}

/// Attention with normed queries and without a scale. A layer with its own keys and values appends
/// them first; other layers use the cache of their donor.
fn attend(rec: &mut Recorder, c: &Config, w: &Layer, kv: &mut KvState, l: u32, x: Tensor) -> Tensor {
    let eps = c.layer_norm_rms_epsilon;
    let rows = rec.rope_rows(if w.window.is_some() { &c.rope_swa } else { &c.rope });
    let q = matmul(rec, w.attn_q, x).heads(w.head_count); // [T, N, H]
    rec.tap("attn_q", l, q);
    let q = rms_norm(rec, q, Some(w.attn_q_norm), eps);
    let q = rope(rec, q, rows);
    rec.tap("attn_q_rope", l, q);
    if let Some(own) = &w.own {
        let k = matmul(rec, own.attn_k, x).heads(w.head_count_kv); // [T, K, H]
        let v = own.attn_v.map_or(k, |attn_v| matmul(rec, attn_v, x).heads(w.head_count_kv));
        rec.tap("attn_k", l, k);
        rec.tap("attn_v", l, v);
        let k = rms_norm(rec, k, Some(own.attn_k_norm), eps);
        let k = rope(rec, k, rows);
        rec.tap("attn_k_rope", l, k);
        let v = rms_norm(rec, v, None, eps);
        *kv = kv_append(rec, *kv, k, v);
    }
    let mask = w.window.map_or(Mask::Causal, |n| Mask::Window(n as usize));
    attention(rec, q, *kv, w.head_count_kv, Attend { mask, scale: 1.0, softcap: None }).flat()
}

fn layer(
    rec: &mut Recorder,
    c: &Config,
    w: &Layer,
    kv: &mut KvState,
    l: u32,
    h: Tensor,
    per_layer: Option<Tensor>,
) -> Tensor {
    let eps = c.layer_norm_rms_epsilon;
    rec.tap("layer_in", l, h);
    let x = rms_norm(rec, h, Some(w.attn_norm), eps);
    rec.tap("attn_norm", l, x);
    let a = attend(rec, c, w, kv, l, x);
    rec.tap("attn_out", l, a);
    let a = matmul(rec, w.attn_output, a);
    rec.tap("attn_proj", l, a);
    let a = rms_norm(rec, a, Some(w.post_attention_norm), eps);
    let h = add(rec, h, a);
    rec.tap("ffn_in", l, h);
    let x = rms_norm(rec, h, Some(w.ffn_norm), eps);
    rec.tap("ffn_norm", l, x);
    let (gate, up) = (matmul(rec, w.ffn_gate, x), matmul(rec, w.ffn_up, x));
    rec.tap("ffn_gate", l, gate);
    rec.tap("ffn_up", l, up);
    let y = geglu(rec, gate, up);
    rec.tap("ffn_act", l, y);
    let mut y = matmul(rec, w.ffn_down, y);
    rec.tap("ffn_out", l, y);
    if let (Some(experts), Some(of)) = (&w.experts, &c.experts) {
        y = experts.record(rec, of, l, eps, h, y);
    }
    let y = rms_norm(rec, y, Some(w.post_ffw_norm), eps);
    let mut h = add(rec, h, y);
    if let (Some(ple), Some(all)) = (&w.per_layer, per_layer) {
        let gate = matmul(rec, ple.inp_gate, h);
        rec.tap("inp_gate", l, gate);
        let y = geglu_columns(rec, gate, all, l * c.embedding_length_per_layer_input);
        rec.tap("per_layer_act", l, y);
        let y = matmul(rec, ple.proj, y);
        rec.tap("per_layer_proj", l, y);
        let y = rms_norm(rec, y, Some(ple.post_norm), eps);
        h = add(rec, h, y);
    }
    let h = mul_row(rec, h, w.layer_output_scale);
    rec.tap("layer_out", l, h);
    h
}

impl Architecture for Gemma4 {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn forward(&self, rec: &mut Recorder, kv: &[KvState], rows: Logits) -> Tensor {
        let c = &self.config;
        let mut kv = kv.to_vec(); // layers with their own caches come first, so a cache's index is its layer's
        let mut h = embed_tokens(rec, self.token_embd, Some((c.embedding_length as f32).sqrt()));
        let per_layer = self.per_layer.as_ref().map(|e| e.record(rec, c, h));
        for (l, w) in (0..).zip(&self.layers) {
            rec.layer(Some(l));
            h = layer(rec, c, w, &mut kv[w.cache], l, h, per_layer);
        }
        rec.layer(None);
        logits(rec, &self.head, h, rows)
    }
}
