//! Tiny models with random weights, built in memory, and the executors that run them.
#![allow(dead_code)]

mod gemma;

use gguf::{GgmlType, Gguf, GgufBuilder};
use kernels::testing::Switches;
use kernels::testing::kernel::random::Gen;
use kernels::{Device, Executor, Limits, Select};
use model::{Error, GenerateOptions, Generated, KvType, Model, ModelFile, Sampling, Session, SessionOptions, Tapped};
use std::sync::{Mutex, PoisonError};

/// Rows of the embedding: 256 bytes, 40 merges and 4 control tokens.
pub const VOCABULARY: u32 = 300;
pub const F16: &[GgmlType] = &[GgmlType::F16];
/// The types of a Q4_K_M file, for rows of 256 or more.
pub const MIXED: &[GgmlType] = &[GgmlType::Q4_K, GgmlType::Q6_K];

/// A model's shape. Equal shape and seed give equal weights.
#[derive(Clone, Debug)]
pub struct Tiny {
    pub architecture: &'static str,
    pub layers: u32,
    pub embedding: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    pub feed_forward: u32,
    /// Number of experts, in architectures with experts.
    pub experts: u32,
    pub context: u32,
    pub tied: bool,
    /// Types of the matrices, used in turn.
    pub types: &'static [GgmlType],
    pub seed: u64,
    /// Elements of the per-layer embedding for each layer.
    pub per_layer: u32,
    /// Number of last layers without their own keys and values.
    pub shared: u32,
}

/// A tensor before it is added to the file.
pub struct Spec {
    /// Fastest dimension first.
    pub dims: Vec<u64>,
    pub ty: GgmlType,
    pub values: Vec<f32>,
}

impl Tiny {
    /// Three query heads for one kv head, together wider than the embedding; an output matrix of
    /// its own; F16.
    pub fn qwen3() -> Self {
        Self {
            architecture: "qwen3",
            layers: 2,
            embedding: 64,
            heads: 3,
            kv_heads: 1,
            head_dim: 32,
            feed_forward: 96,
            experts: 0,
            context: 4096,
            tied: false,
            types: F16,
            seed: 1,
            per_layer: 0,
            shared: 0,
        }
    }

    /// Four query heads for two kv heads; the embedding is the output matrix; F16.
    pub fn qwen2() -> Self {
        Self { architecture: "qwen2", heads: 4, kv_heads: 2, tied: true, seed: 2, ..Self::qwen3() }
    }

    /// As [`Tiny::qwen3`], with three of seven experts per row, 32 wide.
    pub fn qwen3moe() -> Self {
        Self { architecture: "qwen3moe", experts: 7, seed: 3, ..Self::qwen3() }
    }

    /// As [`Tiny::qwen2`], with three of five experts per row, 32 wide, and a shared expert of 96.
    pub fn qwen2moe() -> Self {
        Self { architecture: "qwen2moe", experts: 5, seed: 4, ..Self::qwen2() }
    }

    /// The same with rows long enough for blocks of 256.
    pub fn mixed(self) -> Self {
        Self { embedding: 256, heads: 8, kv_heads: 2, head_dim: 64, feed_forward: 512, types: MIXED, ..self }
    }

    /// One narrow layer. The oracle reads thousands of positions in seconds.
    pub fn narrow() -> Self {
        Self { layers: 1, embedding: 32, heads: 2, head_dim: 8, feed_forward: 32, context: 16384, ..Self::qwen3() }
    }

    /// The same model with narrow rows and a long context: thousands of positions take seconds.
    pub fn narrowed(self, context: u32) -> Self {
        Self { embedding: 32, heads: 2, kv_heads: 1, head_dim: 16, feed_forward: 32, context, ..self }
    }

    /// The file's metadata, without tensors.
    pub fn metadata(&self) -> GgufBuilder<'static> {
        let key = |name: &str| format!("{}.{name}", self.architecture);
        let file = vocabulary(GgufBuilder::new().set("general.architecture", self.architecture));
        let file = self
            .gemma_metadata(file)
            .set(key("block_count"), self.layers)
            .set(key("context_length"), self.context)
            .set(key("embedding_length"), self.embedding)
            .set(key("feed_forward_length"), self.feed_forward)
            .set(key("attention.head_count"), self.heads)
            .set(key("attention.head_count_kv"), self.kv_heads)
            .set(key("attention.key_length"), self.head_dim)
            .set(key("attention.value_length"), self.head_dim)
            .set(key("attention.layer_norm_rms_epsilon"), 1e-6_f32)
            .set(key("rope.freq_base"), 1e6_f32);
        let file = self.gemma_arrays(file);
        if self.experts == 0 {
            return file;
        }
        file.set(key("expert_count"), self.experts)
            .set(key("expert_used_count"), 3u32)
            .set(key("expert_feed_forward_length"), self.feed_forward / 3)
            .set(key("expert_shared_feed_forward_length"), self.feed_forward)
    }

    /// Names and shapes [rows, columns] of the tensors. For vectors, rows is 0.
    fn tensors(&self) -> Vec<(String, u32, u32)> {
        if self.architecture.starts_with("gemma") {
            return self.gemma_tensors();
        }
        let (d, f) = (self.embedding, self.feed_forward);
        let (q, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let mut all = vec![("token_embd.weight".to_string(), VOCABULARY, d)];
        for l in 0..self.layers {
            let mut add = |name: &str, rows, cols| all.push((format!("blk.{l}.{name}"), rows, cols));
            add("attn_norm.weight", 0, d);
            add("attn_q.weight", q, d);
            add("attn_k.weight", kv, d);
            add("attn_v.weight", kv, d);
            if self.architecture.starts_with("qwen2") {
                add("attn_q.bias", 0, q);
                add("attn_k.bias", 0, kv);
                add("attn_v.bias", 0, kv);
            } else {
                add("attn_q_norm.weight", 0, self.head_dim);
                add("attn_k_norm.weight", 0, self.head_dim);
            }
            add("attn_output.weight", d, q);
            add("ffn_norm.weight", 0, d);
            let (e, narrow, shared) = (self.experts, f / 3, self.architecture == "qwen2moe");
            if e == 0 {
                add("ffn_gate.weight", f, d);
                add("ffn_up.weight", f, d);
                add("ffn_down.weight", d, f);
                continue;
            }
            add("ffn_gate_inp.weight", e, d);
            add("ffn_gate_exps.weight", e * narrow, d);
            add("ffn_up_exps.weight", e * narrow, d);
            add("ffn_down_exps.weight", e * d, narrow);
            if shared {
                add("ffn_gate_inp_shexp.weight", 0, d);
                add("ffn_gate_shexp.weight", f, d);
                add("ffn_up_shexp.weight", f, d);
                add("ffn_down_shexp.weight", d, f);
            }
        }
        all.push(("output_norm.weight".to_string(), 0, d));
        if !self.tied {
            all.push(("output.weight".to_string(), VOCABULARY, d));
        }
        all
    }

    /// [rows, columns] of a matrix, if the file has it.
    pub fn shape(&self, name: &str) -> Option<[usize; 2]> {
        let tensor = self.tensors().into_iter().find(|(known, ..)| known == name);
        tensor.map(|(_, rows, cols)| [rows as usize, cols as usize])
    }

    /// The file. `edit` changes each tensor by name, and returns whether to keep it.
    pub fn edited(
        &self,
        metadata: GgufBuilder<'static>,
        mut edit: impl FnMut(&str, &mut Spec) -> bool,
    ) -> GgufBuilder<'static> {
        let mut g = Gen::new(self.seed);
        let mut types = self.types.iter().cycle();
        let mut file = metadata;
        for (name, rows, cols) in self.tensors() {
            let (dims, ty) = match rows {
                0 => (vec![u64::from(cols)], GgmlType::F32),
                _ if name.ends_with("ffn_gate_inp.weight") => (vec![u64::from(cols), u64::from(rows)], GgmlType::F32),
                _ if name.ends_with("_exps.weight") => {
                    let each = rows / self.experts;
                    ([cols, each, self.experts].map(u64::from).to_vec(), *types.next().expect("a type"))
                }
                _ => (vec![u64::from(cols), u64::from(rows)], *types.next().expect("a type")),
            };
            // Rows have length 1 on average, so products and logits are about 1.
            let scale = (3.0 / cols as f32).sqrt();
            let value = |n: u32| match name.as_str() {
                _ if rows == 0 && name.contains("norm") => 1.0 + 0.2 * g.unit(),
                // Routers prefer some experts, and experts have different weights.
                _ if name.ends_with("ffn_gate_inp.scale") => 12.0 * g.unit(),
                _ if name.ends_with("exps.scale") => 1.0 + 0.5 * g.unit(),
                _ if name.ends_with("output_scale.weight") => 0.9 + 0.1 * g.unit(),
                // A quarter of the pairs is rotated.
                "rope_freqs.weight" => {
                    if n < cols / 4 {
                        1.0
                    } else {
                        1e30
                    }
                }
                _ if rows == 0 => 0.2 * g.unit(),
                // Rows of other tokens give logits of 0, so greedy text is printable.
                "output.weight" if !(0x20..0x7f).contains(&(n / cols)) && !(256..296).contains(&(n / cols)) => {
                    0.0 * g.unit()
                }
                _ => scale * g.unit(),
            };
            let mut spec = Spec { dims, ty, values: (0..rows.max(1) * cols).map(value).collect() };
            if edit(&name, &mut spec) {
                let bytes = gguf::quantize(spec.ty, &spec.values, spec.dims[0] as usize);
                let empty = || vec![0; spec.ty.row_bytes(spec.values.len()).expect("whole blocks")];
                file = file.tensor(name, &spec.dims, spec.ty, bytes.unwrap_or_else(|_| empty()));
            }
        }
        file
    }

    /// The file.
    pub fn file(&self) -> GgufBuilder<'static> {
        self.edited(self.metadata(), |_, _| true)
    }

    /// The model, loaded.
    pub fn on(&self, executor: &Executor) -> Model {
        open(&self.file()).expect("a good file").on(executor.clone()).expect("loads")
    }
}

/// A byte-level vocabulary of [`VOCABULARY`] tokens.
fn vocabulary(file: GgufBuilder<'static>) -> GgufBuilder<'static> {
    let prints = |b: u8| matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match prints(byte) {
        true => byte as char,
        false => char::from_u32(0x100 + (0..byte).filter(|&b| !prints(b)).count() as u32).expect("a character"),
    };
    let mut tokens: Vec<String> = (0..=255).map(|byte| spell(byte).to_string()).collect();
    let mut merges = vec![];
    for (left, right) in "bcdfghj ".chars().flat_map(|c| "aeiou".chars().map(move |v| (c, v))) {
        let left = spell(left as u8);
        merges.push(format!("{left} {right}"));
        tokens.push(format!("{left}{right}"));
    }
    tokens.extend(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"].map(String::from));
    file.set("tokenizer.ggml.model", "gpt2")
        .set("tokenizer.ggml.pre", "qwen2")
        .set("tokenizer.ggml.token_type", [vec![1_i32; 296], vec![3; 4]].concat())
        .set("tokenizer.ggml.tokens", tokens)
        .set("tokenizer.ggml.merges", merges)
        .set("tokenizer.ggml.eos_token_id", 298_u32)
}

/// Opens a file from memory.
pub fn open(file: &GgufBuilder) -> Result<ModelFile, Error> {
    ModelFile::new(Gguf::from_bytes(file.to_bytes().expect("writes"))?)
}

/// The number of mutation rounds: `usual`, times `WEFT_ROUNDS` if it is set.
pub fn rounds(usual: u64) -> u64 {
    usual * std::env::var("WEFT_ROUNDS").map_or(1, |times| times.parse::<u64>().expect("WEFT_ROUNDS is a number"))
}

/// Devices that no test uses at the moment.
type Spare = Mutex<Vec<Device>>;

/// A device that one test uses; the next test gets it afterwards. Concurrent tests have separate
/// devices, because a software driver runs one device's work on one thread.
struct Lease(Device, &'static Spare);

impl Lease {
    fn take(spare: &'static Spare, limits: Limits) -> Self {
        let open = || Device::open(&Select::Best, limits).expect("these tests need a Vulkan, Metal or DX12 driver");
        let taken = spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(taken.unwrap_or_else(open), spare)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push(self.0.clone());
    }
}

/// A GPU, which must exist. A software driver is accepted.
pub fn gpu() -> Executor {
    static SPARE: Spare = Mutex::new(vec![]);
    thread_local!(static LEASE: Lease = Lease::take(&SPARE, Limits::from_env()));
    Executor::Gpu(LEASE.with(|lease| lease.0.clone()))
}

/// The same with only the limits that WebGPU guarantees.
pub fn webgpu() -> Executor {
    static SPARE: Spare = Mutex::new(vec![]);
    thread_local!(static LEASE: Lease = Lease::take(&SPARE, Limits::WebGpu));
    Executor::Gpu(LEASE.with(|lease| lease.0.clone()))
}

/// Both kinds of executor.
pub fn both() -> [Executor; 2] {
    [Executor::Cpu, gpu()]
}

/// `count` ids of ordinary tokens, pseudo-random and equal on every run.
pub fn ids(count: usize, seed: u64) -> Vec<u32> {
    let mut g = Gen::new(seed);
    (0..count).map(|_| (g.bits() % 256) as u32).collect()
}

/// Options with an f32 cache.
pub fn exact(chunk: u32) -> SessionOptions {
    SessionOptions::default().chunk(chunk).kv(KvType::F32).plan(kernels::PlanOptions::plain())
}

/// The logits of all fed tokens, and the taps of the last chunk.
pub fn logits(session: &mut Session) -> (Vec<f32>, Vec<Tapped>) {
    let (mut all, mut taps) = (vec![], vec![]);
    let each = |from: usize, rows: &[f32], tapped: &[Tapped]| {
        assert!(all.is_empty() || from * VOCABULARY as usize >= all.len(), "chunks in order");
        all.extend_from_slice(rows);
        taps = tapped.to_vec();
    };
    session.logits(each).expect("logits");
    (all, taps)
}

/// The largest difference.
pub fn worst(reference: &[f32], got: &[f32]) -> f32 {
    assert_eq!(reference.len(), got.len(), "as many values");
    reference.iter().zip(got).map(|(r, g)| (r - g).abs()).fold(0.0, |a, b| if b.is_nan() { b } else { a.max(b) })
}

/// Greedy generation of exactly `tokens` tokens.
pub fn greedy(tokens: usize) -> GenerateOptions {
    GenerateOptions::default().sampling(Sampling::greedy()).max_tokens(Some(tokens)).ignore_end(true)
}

/// All tokens of a generation.
pub fn run(session: &mut Session, options: GenerateOptions) -> Vec<Generated> {
    session.generate_with(options).expect("starts").collect::<Result<_, _>>().expect("generates")
}

/// The ids of a generation.
pub fn drawn(tokens: &[Generated]) -> Vec<u32> {
    tokens.iter().map(|t| t.id).collect()
}

/// The text of a generation.
pub fn text(tokens: &[Generated]) -> String {
    tokens.iter().map(|t| t.text.as_str()).collect()
}
