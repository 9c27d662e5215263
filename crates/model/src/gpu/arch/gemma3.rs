//! Gemma 3: norms before and after each block, per-head q/k norms, five sliding-window layers for
//! each full-attention layer, two rope tables, GEGLU.
//! (Gemma Team 2025, arXiv 2503.19786; Hugging Face `Gemma3ForCausalLM`.) Norm weights are stored
//! as 1 + w.

use super::{Architecture, Cache, Head, Logits, Summary, embed_tokens, logits};
use crate::error::Error;
use crate::load::Loader;
use crate::meta::{LENGTHS, Meta};
use cpu_ref::Mask;
use gguf::Gguf;
use kernels::ops::{Attend, add, attention, geglu, kv_append, matmul, rms_norm, rope};
use kernels::{KvState, Recorder, RopeTable, Tensor, Weight};

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
    final_logit_softcapping: Option<f32>,
    layer_norm_rms_epsilon: f32,
    /// The table of rotations for full-attention layers.
    rope: RopeTable,
    /// The table of rotations for sliding-window layers.
    rope_swa: RopeTable,
}

/// Number of layers of the 1B model. Ollama's first files of this model state the soft cap of Gemma
/// 2, which the model does not have.
const BLOCKS_1B: u32 = 26;
/// Numbers of layers of the 4B, 12B and 27B models. Ollama's first files of these models do not
/// state that rope divides positions by 8.
const BLOCKS_SCALED: [u32; 3] = [34, 48, BLOCKS_27B];
/// Number of layers of the 27B model. Only this model has a `query_pre_attn_scalar` other than the
/// head's length, and files do not store the scalar.
const BLOCKS_27B: u32 = 62;

impl Config {
    fn read(file: &Gguf) -> Result<Self, Error> {
        let meta = Meta { file, architecture: "gemma3" };
        let embedding_length = meta.count("embedding_length", LENGTHS)?;
        let block_count = meta.count("block_count", 1..=1024)?;
        let heads = meta.heads(block_count)?;
        let key_length = meta.head_dim(embedding_length, heads[0].0)?;
        let window = meta.count("attention.sliding_window", 1..=1 << 24)?;
        let softcap = meta.optional_positive("final_logit_softcapping")?;
        // Ollama's files use other names for these two keys. The standard keys take precedence.
        let (base, base_swa) =
            (meta.positive_or("rope.global.freq_base", 1e6)?, meta.positive_or("rope.local.freq_base", 1e4)?);
        let rope = meta.rope(key_length, base)?;
        let told = file.get_opt::<&str>(&meta.key("rope.scaling.type"))?.is_some();
        Ok(Self {
            block_count,
            context_length: meta.context_length()?,
            embedding_length,
            feed_forward_length: meta.per_layer("feed_forward_length", LENGTHS, block_count)?,
            heads,
            key_length,
            sliding_window: meta
                .sliding(block_count, Some(6))?
                .into_iter()
                .map(|slides| slides.then_some(window))
                .collect(),
            final_logit_softcapping: softcap.filter(|_| block_count != BLOCKS_1B),
            layer_norm_rms_epsilon: meta.positive_or("attention.layer_norm_rms_epsilon", 1e-6)?,
            rope: if !told && BLOCKS_SCALED.contains(&block_count) { RopeTable { scale: 0.125, ..rope } } else { rope },
            rope_swa: meta.rope_swa(key_length, base_swa)?,
        })
    }

    fn attend(&self, l: usize) -> Attend {
        let scalar =
            if self.block_count == BLOCKS_27B { self.embedding_length / self.heads[l].0 } else { self.key_length };
        let mask = self.sliding_window[l].map_or(Mask::Causal, |n| Mask::Window(n as usize));
        Attend { mask, scale: 1.0 / (scalar as f32).sqrt(), softcap: None }
    }
}

struct Layer {
    head_count: u32,
    head_count_kv: u32,
    attend: Attend,
    attn_norm: Weight,
    attn_q: Weight,
    attn_k: Weight,
    attn_v: Weight,
    attn_q_norm: Weight,
    attn_k_norm: Weight,
    attn_output: Weight,
    post_attention_norm: Weight,
    ffn_norm: Weight,
    ffn_gate: Weight,
    ffn_up: Weight,
    ffn_down: Weight,
    post_ffw_norm: Weight,
}

impl Layer {
    fn load(c: &Config, l: u32, from: &mut Loader<'_>) -> Result<Self, Error> {
        let (d, f) = (c.embedding_length, c.feed_forward_length[l as usize]);
        let (head_count, head_count_kv) = c.heads[l as usize];
        let (q, kv) = (head_count * c.key_length, head_count_kv * c.key_length);
        let name = |tensor: &str| format!("blk.{l}.{tensor}.weight");
        Ok(Self {
            head_count,
            head_count_kv,
            attend: c.attend(l as usize),
            attn_norm: from.vector(&name("attn_norm"), d)?,
            attn_q: from.matrix(&name("attn_q"), q, d)?,
            attn_k: from.matrix(&name("attn_k"), kv, d)?,
            attn_v: from.matrix(&name("attn_v"), kv, d)?,
            attn_q_norm: from.vector(&name("attn_q_norm"), c.key_length)?,
            attn_k_norm: from.vector(&name("attn_k_norm"), c.key_length)?,
            attn_output: from.matrix(&name("attn_output"), d, q)?,
            post_attention_norm: from.vector(&name("post_attention_norm"), d)?,
            ffn_norm: from.vector(&name("ffn_norm"), d)?,
            ffn_gate: from.matrix(&name("ffn_gate"), f, d)?,
            ffn_up: from.matrix(&name("ffn_up"), f, d)?,
            ffn_down: from.matrix(&name("ffn_down"), d, f)?,
            post_ffw_norm: from.vector(&name("post_ffw_norm"), d)?,
        })
    }
}

struct Gemma3 {
    config: Config,
    summary: Summary,
    token_embd: Weight,
    layers: Vec<Layer>,
    head: Head,
}

pub(super) fn load(file: &Gguf, from: &mut Loader<'_>) -> Result<Box<dyn Architecture>, Error> {
    let config = Config::read(file)?;
    let d = config.embedding_length;
    let vocabulary = from.rows("token_embd.weight")?;
    let token_embd = from.matrix("token_embd.weight", vocabulary, d)?;
    let layers = (0..config.block_count).map(|l| Layer::load(&config, l, from)).collect::<Result<_, _>>()?;
    let output_norm = from.vector("output_norm.weight", d)?;
    let tied = !from.has("output.weight");
    let output = if tied { token_embd } else { from.matrix("output.weight", vocabulary, d)? };
    let cache = |(&(_, kv), &window): (&(u32, u32), &Option<u32>)| Cache { width: kv * config.key_length, window };
    let head = Head {
        output_norm,
        layer_norm_rms_epsilon: config.layer_norm_rms_epsilon,
        output,
        final_logit_softcapping: config.final_logit_softcapping,
    };
    let summary = Summary {
        architecture: "gemma3",
        block_count: config.block_count,
        context_length: config.context_length,
        embedding_length: d,
        vocabulary,
        caches: config.heads.iter().zip(&config.sliding_window).map(cache).collect(),
    };
    Ok(Box::new(Gemma3 { config, summary, token_embd, layers, head }))
}

fn layer(rec: &mut Recorder, c: &Config, w: &Layer, kv: KvState, l: u32, h: Tensor) -> Tensor {
    let eps = c.layer_norm_rms_epsilon;
    let rows = rec.rope_rows(if w.attend.mask == Mask::Causal { &c.rope } else { &c.rope_swa });
    rec.tap("layer_in", l, h);
    let x = rms_norm(rec, h, Some(w.attn_norm), eps);
    rec.tap("attn_norm", l, x);
    let q = matmul(rec, w.attn_q, x).heads(w.head_count); // [T, N, H]
    let k = matmul(rec, w.attn_k, x).heads(w.head_count_kv); // [T, K, H]
    let v = matmul(rec, w.attn_v, x).heads(w.head_count_kv);
    rec.tap("attn_q", l, q);
    rec.tap("attn_k", l, k);
    rec.tap("attn_v", l, v);
    let q = rms_norm(rec, q, Some(w.attn_q_norm), eps); // per head, before rope
    let k = rms_norm(rec, k, Some(w.attn_k_norm), eps);
    let (q, k) = (rope(rec, q, rows), rope(rec, k, rows));
    rec.tap("attn_q_rope", l, q);
    rec.tap("attn_k_rope", l, k);
    let kv = kv_append(rec, kv, k, v);
    let a = attention(rec, q, kv, w.head_count_kv, w.attend).flat();
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
    let y = matmul(rec, w.ffn_down, y);
    rec.tap("ffn_out", l, y);
    let y = rms_norm(rec, y, Some(w.post_ffw_norm), eps);
    let h = add(rec, h, y);
    rec.tap("layer_out", l, h);
    h
}

impl Architecture for Gemma3 {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn forward(&self, rec: &mut Recorder, kv: &[KvState], rows: Logits) -> Tensor {
        let c = &self.config;
        let mut h = embed_tokens(rec, self.token_embd, Some((c.embedding_length as f32).sqrt()));
        for ((l, w), &kv) in (0..).zip(&self.layers).zip(kv) {
            rec.layer(Some(l));
            h = layer(rec, c, w, kv, l, h);
        }
        rec.layer(None);
        logits(rec, &self.head, h, rows)
    }
}
