//! Gemma 3n: four streams, of which one goes through the layers and then predicts and corrects the
//! others (AltUp). Further parts are a low-rank residual (Laurel), an embedding per layer, sparse
//! activations, and keys and values that the last layers share.
//! (Hugging Face `Gemma3nForCausalLM`; AltUp: Baykal et al. 2023, arXiv 2301.13310.)

use super::{Architecture, Cache, Head, Logits, Summary, embed_tokens, logits, rows_for};
use crate::error::Error;
use crate::load::Loader;
use crate::meta::{LENGTHS, Meta};
use cpu_ref::Mask;
use gguf::Gguf;
use kernels::ops::{
    Attend, RowWeights, add, add_weighted, attention, embed, gaussian_top_k, geglu, geglu_columns, kv_append,
    match_rms, matmul, mul_row, rms_norm, rope, scale, softcap,
};
use kernels::{KvState, Recorder, RopeTable, Tensor, Weight};
use std::f32::consts::FRAC_1_SQRT_2;

/// Lower limit of the mean square that a stream is divided by.
const LEAST_SQUARE: f32 = 1e-5;

struct Config {
    block_count: u32,
    context_length: u32,
    embedding_length: u32,
    /// The feed-forward width of each layer.
    feed_forward_length: Vec<u32>,
    /// (query heads, kv heads) per layer.
    heads: Vec<(u32, u32)>,
    key_length: u32,
    /// Positions that each layer's rows attend to; `None` for all.
    sliding_window: Vec<Option<u32>>,
    /// For each layer, the layer whose keys and values it uses.
    donor: Vec<usize>,
    embedding_length_per_layer_input: u32,
    /// For each layer, the threshold of its gates in standard deviations above the mean. It is
    /// subtracted from the gates, and negative results become 0. `None` leaves the gates unchanged.
    activation_sparsity_scale: Vec<Option<f32>>,
    altup_num_inputs: u32,
    /// The index of the stream that goes through the layers.
    altup_active_idx: usize,
    laurel_rank: u32,
    /// Ollama's files do not state it.
    final_logit_softcapping: f32,
    layer_norm_rms_epsilon: f32,
    /// The table of rotations for full-attention layers.
    rope: RopeTable,
    /// The table of rotations for sliding-window layers.
    rope_swa: RopeTable,
}

impl Config {
    fn read(file: &Gguf, laurel_rank: u32) -> Result<Self, Error> {
        let meta = Meta { file, architecture: "gemma3n" };
        let embedding_length = meta.count("embedding_length", LENGTHS)?;
        let block_count = meta.count("block_count", 1..=1024)?;
        let heads = meta.heads(block_count)?;
        let key_length = meta.head_dim(embedding_length, heads[0].0)?;
        let window = meta.count("attention.sliding_window", 1..=1 << 24)?;
        let slides = meta.sliding(block_count, Some(5))?;
        // Ollama's files use another name for this key. The standard key takes precedence.
        let base_swa = meta.positive_or("rope.freq_base_local", 1e4)?;
        let altup_num_inputs = meta.count("altup.num_inputs", 2..=kernels::ops::MAX_WEIGHTED as u32)?;
        Ok(Self {
            block_count,
            context_length: meta.context_length()?,
            embedding_length,
            feed_forward_length: meta.per_layer("feed_forward_length", LENGTHS, block_count)?,
            donor: meta.donors(&slides, &heads)?,
            heads,
            key_length,
            sliding_window: slides.iter().map(|slides| slides.then_some(window)).collect(),
            embedding_length_per_layer_input: meta.count("embedding_length_per_layer_input", 1..=1 << 16)?,
            activation_sparsity_scale: meta.quantiles("activation_sparsity_scale", block_count)?,
            altup_num_inputs,
            altup_active_idx: meta.count("altup.active_idx", 0..=altup_num_inputs - 1)? as usize,
            laurel_rank,
            final_logit_softcapping: meta.positive_or("final_logit_softcapping", 30.0)?,
            layer_norm_rms_epsilon: meta.positive("attention.layer_norm_rms_epsilon")?,
            rope: meta.rope(key_length, 1e6)?,
            rope_swa: meta.rope_swa(key_length, base_swa)?,
        })
    }
}

/// Weights for the keys and values of a layer that does not share another layer's.
struct KeyValue {
    attn_k: Weight,
    attn_v: Weight,
    attn_k_norm: Weight,
}

struct Layer {
    head_count: u32,
    head_count_kv: u32,
    window: Option<u32>,
    /// Index of the cache that the layer appends to or reads.
    cache: usize,
    sparsity: Option<f32>,
    altup_router: Weight,
    altup_router_norm: Weight,
    altup_predict_coef: Weight,
    altup_correct_coef: Weight,
    altup_correct_scale: Weight,
    laurel_l: Weight,
    laurel_r: Weight,
    laurel_post_norm: Weight,
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
    post_ffw_norm: Weight,
    inp_gate: Weight,
    proj: Weight,
    post_norm: Weight,
}

impl Layer {
    fn load(c: &Config, l: usize, from: &mut Loader<'_>) -> Result<Self, Error> {
        let (d, f, p, n) =
            (c.embedding_length, c.feed_forward_length[l], c.embedding_length_per_layer_input, c.altup_num_inputs);
        let (head_count, head_count_kv) = c.heads[l];
        let (q, kv) = (head_count * c.key_length, head_count_kv * c.key_length);
        let name = |tensor: &str| format!("blk.{l}.{tensor}.weight");
        Ok(Self {
            head_count,
            head_count_kv,
            window: c.sliding_window[l],
            cache: c.donor[l],
            sparsity: c.activation_sparsity_scale[l],
            altup_router: from.matrix(&name("altup_router"), n, d)?,
            altup_router_norm: from.vector(&name("altup_router_norm"), d)?,
            altup_predict_coef: from.matrix(&name("altup_predict_coef"), n * n, n)?,
            altup_correct_coef: from.matrix(&name("altup_correct_coef"), n, n)?,
            altup_correct_scale: from.vector(&name("altup_correct_scale"), d)?,
            laurel_l: from.matrix(&name("laurel_l"), c.laurel_rank, d)?,
            laurel_r: from.matrix(&name("laurel_r"), d, c.laurel_rank)?,
            laurel_post_norm: from.vector(&name("laurel_post_norm"), d)?,
            attn_norm: from.vector(&name("attn_norm"), d)?,
            attn_q: from.matrix(&name("attn_q"), q, d)?,
            attn_q_norm: from.vector(&name("attn_q_norm"), c.key_length)?,
            own: match c.donor[l] == l {
                true => Some(KeyValue {
                    attn_k: from.matrix(&name("attn_k"), kv, d)?,
                    attn_v: from.matrix(&name("attn_v"), kv, d)?,
                    attn_k_norm: from.vector(&name("attn_k_norm"), c.key_length)?,
                }),
                false => None,
            },
            attn_output: from.matrix(&name("attn_output"), d, q)?,
            post_attention_norm: from.vector(&name("post_attention_norm"), d)?,
            ffn_norm: from.vector(&name("ffn_norm"), d)?,
            ffn_gate: from.matrix(&name("ffn_gate"), f, d)?,
            ffn_up: from.matrix(&name("ffn_up"), f, d)?,
            ffn_down: from.matrix(&name("ffn_down"), d, f)?,
            post_ffw_norm: from.vector(&name("post_ffw_norm"), d)?,
            inp_gate: from.matrix(&name("inp_gate"), p, d)?,
            proj: from.matrix(&name("proj"), d, p)?,
            post_norm: from.vector(&name("post_norm"), d)?,
        })
    }
}

struct Gemma3n {
    config: Config,
    summary: Summary,
    token_embd: Weight,
    per_layer_token_embd: Weight,
    per_layer_model_proj: Weight,
    per_layer_proj_norm: Weight,
    /// Projections from the first stream to each other stream, and back.
    altup_proj: Vec<Weight>,
    altup_unembd_proj: Vec<Weight>,
    layers: Vec<Layer>,
    head: Head,
}

pub(super) fn load(file: &Gguf, from: &mut Loader<'_>) -> Result<Box<dyn Architecture>, Error> {
    let c = Config::read(file, from.rows("blk.0.laurel_l.weight")?)?;
    let (d, p, others) =
        (c.embedding_length, c.block_count * c.embedding_length_per_layer_input, c.altup_num_inputs - 1);
    // In Ollama's files, rows for images and sounds follow the rows of text tokens. They have no
    // per-layer embedding, so they are left out.
    let vocabulary = from.rows("token_embd.weight")?.min(from.rows("per_layer_token_embd.weight")?);
    let token_embd = from.leading("token_embd.weight", vocabulary, d)?;
    let summary = Summary {
        architecture: "gemma3n",
        block_count: c.block_count,
        context_length: c.context_length,
        embedding_length: d,
        vocabulary,
        caches: (0..c.donor.len())
            .filter(|&l| c.donor[l] == l)
            .map(|l| Cache { width: c.heads[l].1 * c.key_length, window: c.sliding_window[l] })
            .collect(),
    };
    Ok(Box::new(Gemma3n {
        summary,
        token_embd,
        per_layer_token_embd: from.leading("per_layer_token_embd.weight", vocabulary, p)?,
        per_layer_model_proj: from.matrix("per_layer_model_proj.weight", p, d)?,
        per_layer_proj_norm: from.vector("per_layer_proj_norm.weight", c.embedding_length_per_layer_input)?,
        altup_proj: from.matrices("altup_proj.weight", others, d, d)?,
        altup_unembd_proj: from.matrices("altup_unembd_proj.weight", others, d, d)?,
        layers: (0..c.block_count as usize).map(|l| Layer::load(&c, l, from)).collect::<Result<_, _>>()?,
        head: Head {
            output_norm: from.vector("output_norm.weight", d)?,
            layer_norm_rms_epsilon: c.layer_norm_rms_epsilon,
            output: if from.has("output.weight") { from.leading("output.weight", vocabulary, d)? } else { token_embd },
            final_logit_softcapping: Some(c.final_logit_softcapping),
        },
        config: c,
    }))
}

/// [T, n]: the router's weight for each stream, computed from the active stream.
fn modalities(rec: &mut Recorder, c: &Config, w: &Layer, active: Tensor) -> Tensor {
    let x = rms_norm(rec, active, Some(w.altup_router_norm), c.layer_norm_rms_epsilon);
    let x = matmul(rec, w.altup_router, x);
    let x = scale(rec, x, 1.0 / c.embedding_length as f32);
    softcap(rec, x, 1.0) // tanh
}

/// Each stream plus a weighted sum of all streams.
fn predict(rec: &mut Recorder, c: &Config, w: &Layer, streams: &[Tensor]) -> Vec<Tensor> {
    let m = modalities(rec, c, w, streams[c.altup_active_idx]);
    let coefs = matmul(rec, w.altup_predict_coef, m); // [T, n n], n coefficients for each stream
    let weights = |i: u32| RowWeights { c: coefs, first: i * c.altup_num_inputs, shift: 0.0 };
    (0..).zip(streams).map(|(i, &h)| add_weighted(rec, h, streams, weights(i))).collect()
}

/// Each predicted stream plus a weighted part of the change that the layer made to the active
/// stream.
fn correct(rec: &mut Recorder, c: &Config, w: &Layer, predicted: &[Tensor], made: Tensor) -> Vec<Tensor> {
    let m = modalities(rec, c, w, made);
    let coefs = matmul(rec, w.altup_correct_coef, m); // [T, n]
    let negative = scale(rec, predicted[c.altup_active_idx], -1.0);
    let innovation = add(rec, made, negative);
    let weights = |i: u32| RowWeights { c: coefs, first: i, shift: 1.0 };
    (0..).zip(predicted).map(|(i, &h)| add_weighted(rec, h, &[innovation], weights(i))).collect()
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
        let v = matmul(rec, own.attn_v, x).heads(w.head_count_kv);
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

/// Attention and feed-forward of the layer, applied to the active stream `h`. The caller corrects
/// the other streams afterwards.
fn block(rec: &mut Recorder, c: &Config, w: &Layer, kv: &mut KvState, l: u32, h: Tensor) -> Tensor {
    let eps = c.layer_norm_rms_epsilon;
    rec.tap("layer_in", l, h);
    let x = rms_norm(rec, h, Some(w.attn_norm), eps);
    rec.tap("attn_norm", l, x);
    let low = matmul(rec, w.laurel_l, x);
    let low = matmul(rec, w.laurel_r, low);
    let low = rms_norm(rec, low, Some(w.laurel_post_norm), eps);
    let laurel = add(rec, x, low);
    let a = attend(rec, c, w, kv, l, x);
    rec.tap("attn_out", l, a);
    let a = matmul(rec, w.attn_output, a);
    rec.tap("attn_proj", l, a);
    let a = rms_norm(rec, a, Some(w.post_attention_norm), eps);
    let h = add(rec, h, a);
    let h = add(rec, h, laurel);
    let h = scale(rec, h, FRAC_1_SQRT_2);
    rec.tap("ffn_in", l, h);
    let x = rms_norm(rec, h, Some(w.ffn_norm), eps);
    rec.tap("ffn_norm", l, x);
    let (gate, up) = (matmul(rec, w.ffn_gate, x), matmul(rec, w.ffn_up, x));
    rec.tap("ffn_gate", l, gate);
    rec.tap("ffn_up", l, up);
    let gate = w.sparsity.map_or(gate, |deviations| gaussian_top_k(rec, gate, deviations));
    let y = geglu(rec, gate, up);
    rec.tap("ffn_act", l, y);
    let y = matmul(rec, w.ffn_down, y);
    rec.tap("ffn_out", l, y);
    let y = rms_norm(rec, y, Some(w.post_ffw_norm), eps);
    add(rec, h, y)
}

fn layer(
    rec: &mut Recorder,
    c: &Config,
    w: &Layer,
    kv: &mut KvState,
    l: u32,
    streams: &[Tensor],
    per_layer: Tensor,
) -> Vec<Tensor> {
    let predicted = predict(rec, c, w, streams);
    let made = block(rec, c, w, kv, l, predicted[c.altup_active_idx]);
    let mut streams = correct(rec, c, w, &predicted, made);
    let x = mul_row(rec, streams[c.altup_active_idx], w.altup_correct_scale);
    let gate = matmul(rec, w.inp_gate, x);
    rec.tap("inp_gate", l, gate);
    let y = geglu_columns(rec, gate, per_layer, l * c.embedding_length_per_layer_input);
    rec.tap("per_layer_act", l, y);
    let y = matmul(rec, w.proj, y);
    rec.tap("per_layer_proj", l, y);
    let y = rms_norm(rec, y, Some(w.post_norm), c.layer_norm_rms_epsilon);
    // The reference adds to all streams except the first, even where another stream is active.
    for h in &mut streams[1..] {
        *h = add(rec, *h, y);
    }
    rec.tap("layer_out", l, streams[c.altup_active_idx]);
    streams
}

impl Gemma3n {
    /// [T, L P]: the per-layer embedding of the token plus a projection of its scaled embedding
    /// `h`.
    fn per_layer(&self, rec: &mut Recorder, h: Tensor) -> Tensor {
        let c = &self.config;
        let (d, p) = (c.embedding_length as f32, c.embedding_length_per_layer_input as f32);
        let tokens = rec.state(0);
        let token = embed(rec, self.per_layer_token_embd, tokens);
        let token = scale(rec, token, p.sqrt());
        let context = matmul(rec, self.per_layer_model_proj, h).heads(c.block_count); // [T, L, P]
        // RMS norm of context / sqrt(D): a larger epsilon replaces the division.
        let context = rms_norm(rec, context, Some(self.per_layer_proj_norm), d * c.layer_norm_rms_epsilon);
        let both = add(rec, context.flat(), token);
        scale(rec, both, FRAC_1_SQRT_2)
    }

    /// The mean of all streams, each scaled to the mean square of the first.
    fn joined(&self, rec: &mut Recorder, streams: &[Tensor]) -> Tensor {
        let mut sum = streams[0];
        for (&w, &h) in self.altup_unembd_proj.iter().zip(&streams[1..]) {
            let h = matmul(rec, w, h);
            let h = match_rms(rec, h, streams[0], LEAST_SQUARE);
            sum = add(rec, sum, h);
        }
        scale(rec, sum, 1.0 / streams.len() as f32)
    }
}

impl Architecture for Gemma3n {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn forward(&self, rec: &mut Recorder, kv: &[KvState], rows: Logits) -> Tensor {
        let c = &self.config;
        let mut kv = kv.to_vec(); // layers with their own caches come first, so a cache's index is its layer's
        let h = embed_tokens(rec, self.token_embd, Some((c.embedding_length as f32).sqrt()));
        let per_layer = self.per_layer(rec, h);
        let mut streams = vec![h];
        for &w in &self.altup_proj {
            let other = matmul(rec, w, h);
            streams.push(match_rms(rec, other, h, LEAST_SQUARE));
        }
        for (l, w) in (0..).zip(&self.layers) {
            rec.layer(Some(l));
            streams = layer(rec, c, w, &mut kv[w.cache], l, &streams, per_layer);
        }
        rec.layer(None);
        let streams: Vec<Tensor> = streams.into_iter().map(|h| rows_for(rec, h, rows)).collect();
        let h = self.joined(rec, &streams);
        logits(rec, &self.head, h, Logits::All)
    }
}
