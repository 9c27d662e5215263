//! Times whole decoder layers at the shapes of a model, as the planner fuses and narrows them. This
//! runs the kernels that only plans use.

use crate::models::{Family, Model};
use crate::{Bench, CONTEXT, batches, chunk};
use cpu_ref::{KvType, Mask};
use criterion::Criterion;
use gguf::GgmlType;
use kernels::ops::{self, Attend};
use kernels::testing::Switches;
use kernels::{Caps, Device, KvState, Lead, PlanOptions, Precision, RopeTable, StateKind, Tensor, Weight};

const EPS: f32 = 1e-6;
/// Number of layers of a plan. They share weights; the end of one is fused with the beginning of
/// the next.
const LAYERS: u32 = 2;
/// A position so small that attention is a single kernel on every device that has such a kernel.
const NEAR: u32 = 99;

/// The properties in which the layers of one model differ.
struct Kind {
    name: &'static str,
    head_dim: u32,
    window: Option<usize>,
    /// True if the layer makes keys and values, false if it reads the cache of an earlier layer.
    own: bool,
}

fn kinds(m: &Model) -> Vec<Kind> {
    let kind = |name, head_dim, window, own| Kind { name, head_dim, window, own };
    match m.family {
        Family::Qwen2 | Family::Qwen3 => vec![kind("layer", m.head_dim, None, true)],
        Family::Gemma4 { window, global_dim, .. } => [
            (true, "window layer", "global layer"),
            (false, "window layer of shared keys", "global layer of shared keys"),
        ]
        .into_iter()
        .flat_map(|(own, near, far)| [kind(near, m.head_dim, Some(window), own), kind(far, global_dim, None, own)])
        .collect(),
    }
}

/// The weights of one layer.
struct Layer {
    norms: [Weight; 2],
    head_norms: Option<[Weight; 2]>,
    biases: Option<[Weight; 3]>,
    q: Weight,
    k: Weight,
    v: Weight,
    output: Weight,
    gate: Weight,
    up: Weight,
    down: Weight,
    /// Norms after the attention and after the gated products.
    post_norms: Option<[Weight; 2]>,
    per_layer: Option<PerLayer>,
}

/// The weights that add a layer's own embedding.
struct PerLayer {
    gate: Weight,
    proj: Weight,
    norm: Weight,
    scale: Weight,
    embedding: Tensor,
}

impl Layer {
    fn new(b: &mut Bench, m: &Model, kind: &Kind, ty: GgmlType) -> Self {
        let (d, q, kv) = (m.embedding, m.heads * kind.head_dim, m.kv_heads * kind.head_dim);
        let qwen2 = matches!(m.family, Family::Qwen2);
        Self {
            norms: [b.vector(d), b.vector(d)],
            head_norms: (!qwen2).then(|| [b.vector(kind.head_dim), b.vector(kind.head_dim)]),
            biases: qwen2.then(|| [b.vector(q), b.vector(kv), b.vector(kv)]),
            q: b.matrix(ty, q, d),
            k: b.matrix(ty, kv, d),
            v: b.matrix(ty, kv, d),
            output: b.matrix(ty, d, q),
            gate: b.matrix(ty, m.ffn, d),
            up: b.matrix(ty, m.ffn, d),
            down: b.matrix(ty, d, m.ffn),
            post_norms: matches!(m.family, Family::Gemma4 { .. }).then(|| [b.vector(d), b.vector(d)]),
            per_layer: match m.family {
                Family::Gemma4 { per_layer, .. } => Some(PerLayer {
                    gate: b.matrix(ty, per_layer, d),
                    proj: b.matrix(ty, d, per_layer),
                    norm: b.vector(d),
                    scale: b.vector(1),
                    embedding: b.tensor(Lead::Step, per_layer),
                }),
                _ => None,
            },
        }
    }

    fn heads(&self, b: &mut Bench, x: Tensor, n: usize, heads: u32) -> Tensor {
        let y = ops::matmul(&mut b.rec, [self.q, self.k, self.v][n], x);
        self.biases.map_or(y, |biases| ops::add_bias(&mut b.rec, y, biases[n])).heads(heads)
    }

    /// The heads of a query or a key, normed and rotated.
    fn turned(&self, b: &mut Bench, x: Tensor, n: usize, table: Tensor) -> Tensor {
        let x = self.head_norms.map_or(x, |norms| ops::rms_norm(&mut b.rec, x, Some(norms[n]), EPS));
        ops::rope(&mut b.rec, x, table)
    }

    fn attention(&self, b: &mut Bench, m: &Model, kind: &Kind, x: Tensor) -> Tensor {
        let table = b.rec.rope_rows(&RopeTable::new(kind.head_dim, 1e6));
        let q = self.heads(b, x, 0, m.heads);
        let q = self.turned(b, q, 0, table);
        let mut kv = KvState::new(b.rec.state(0), b.rec.state(1));
        if kind.own {
            let (k, v) = (self.heads(b, x, 1, m.kv_heads), self.heads(b, x, 2, m.kv_heads));
            let k = self.turned(b, k, 1, table);
            let v = if self.per_layer.is_some() { ops::rms_norm(&mut b.rec, v, None, EPS) } else { v };
            kv = ops::kv_append(&mut b.rec, kv, k, v);
        }
        let mask = kind.window.map_or(Mask::Causal, Mask::Window);
        ops::attention(&mut b.rec, q, kv, m.kv_heads, Attend { mask, scale: 0.088, softcap: m.softcap }).flat()
    }

    fn record(&self, b: &mut Bench, m: &Model, kind: &Kind, h: Tensor) -> Tensor {
        let x = ops::rms_norm(&mut b.rec, h, Some(self.norms[0]), EPS);
        let a = self.attention(b, m, kind, x);
        let rec = &mut b.rec;
        let normed =
            |rec: &mut _, x, n: usize| self.post_norms.map_or(x, |norms| ops::rms_norm(rec, x, Some(norms[n]), EPS));
        let a = ops::matmul(rec, self.output, a);
        let a = normed(rec, a, 0);
        let h = ops::add(rec, h, a);
        let x = ops::rms_norm(rec, h, Some(self.norms[1]), EPS);
        let (gate, up) = (ops::matmul(rec, self.gate, x), ops::matmul(rec, self.up, x));
        let y = if m.gelu { ops::geglu(rec, gate, up) } else { ops::swiglu(rec, gate, up) };
        let y = ops::matmul(rec, self.down, y);
        let y = normed(rec, y, 1);
        let h = ops::add(rec, h, y);
        let Some(own) = &self.per_layer else { return h };
        let gate = ops::matmul(rec, own.gate, h);
        let y = ops::geglu(rec, gate, own.embedding);
        let y = ops::matmul(rec, own.proj, y);
        let y = ops::rms_norm(rec, y, Some(own.norm), EPS);
        let h = ops::add(rec, h, y);
        ops::mul_row(rec, h, own.scale)
    }
}

/// A step to time.
struct Step<'a> {
    device: &'a Device,
    rows: u32,
    /// True if every row is in a separate sequence, at position [`NEAR`]. Otherwise all rows are at
    /// the end of one sequence of [`CONTEXT`] positions.
    apart: bool,
    fast: bool,
    beside: &'static str,
}

fn time(c: &mut Criterion, m: &Model, kind: &Kind, step: &Step<'_>) {
    let Step { device, rows, apart, fast, beside } = *step;
    let states = [StateKind::kv(KvType::F16, m.kv_heads * kind.head_dim); 2];
    let (mode, keys) = (if fast { "fast" } else { "precise" }, if apart { NEAR + 1 } else { CONTEXT });
    let mut b = Bench::new(device, &format!("{} {} {mode}{beside} s{keys}", m.name, kind.name), rows, &states);
    if apart {
        (b.input.positions, b.input.sequences) = (vec![NEAR; rows as usize], (0..rows).collect());
    }
    let layer = Layer::new(&mut b, m, kind, m.types[0]);
    let mut h = b.tensor(Lead::Step, m.embedding);
    for _ in 0..LAYERS {
        h = layer.record(&mut b, m, kind, h);
    }
    b.rec.output(h);
    b.timed(c, LAYERS, &PlanOptions::plain().precision(if fast { Precision::Fast } else { Precision::F32 }));
}

/// Times the layers of a model for one row, for batches and for a chunk, precise and fast. The
/// first kind of layer is also timed with the plan for a device that binds few buffers.
pub fn layers(c: &mut Criterion, device: &Device, m: &Model) {
    let few = device.with_caps(Caps { max_storage_buffers: Caps::WEBGPU.max_storage_buffers, ..device.caps().clone() });
    let chunk = chunk(device);
    for (n, kind) in kinds(m).iter().enumerate() {
        for (rows, fast) in
            [1].iter().chain(batches(device)).chain(&[chunk]).flat_map(|&rows| [(rows, false), (rows, true)])
        {
            let step = Step { device, rows, apart: false, fast, beside: "" };
            time(c, m, kind, &step);
            if fast && rows < chunk {
                time(c, m, kind, &Step { apart: true, ..step });
            }
            if n == 0 && [1, chunk].contains(&rows) {
                time(c, m, kind, &Step { device: &few, beside: " few buffers", ..step });
            }
        }
    }
}
