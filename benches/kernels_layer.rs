//! A whole decoder layer as the planner fuses and narrows it, at the shapes of a model: the rows that only plans make.

use crate::{Bench, CONTEXT, Model, batches, chunk};
use criterion::Criterion;
use gguf::GgmlType;
use kernels::ops::{self, Attend};
use kernels::{Device, KvState, Lead, PlanOptions, RopeTable, StateKind, Tensor, Weight};

const EPS: f32 = 1e-6;

/// The weights of one layer.
struct Layer {
    norms: [Weight; 2],
    head_norms: [Weight; 2],
    q: Weight,
    k: Weight,
    v: Weight,
    output: Weight,
    gate: Weight,
    up: Weight,
    down: Weight,
}

impl Layer {
    fn new(b: &mut Bench, m: &Model, ty: GgmlType) -> Self {
        let (d, q, kv) = (m.embedding, m.heads * m.head_dim, m.kv_heads * m.head_dim);
        Self {
            norms: [b.vector(d), b.vector(d)],
            head_norms: [b.vector(m.head_dim), b.vector(m.head_dim)],
            q: b.matrix(ty, q, d),
            k: b.matrix(ty, kv, d),
            v: b.matrix(ty, kv, d),
            output: b.matrix(ty, d, q),
            gate: b.matrix(ty, m.ffn, d),
            up: b.matrix(ty, m.ffn, d),
            down: b.matrix(ty, d, m.ffn),
        }
    }

    fn record(&self, b: &mut Bench, m: &Model, h: Tensor) -> Tensor {
        let rec = &mut b.rec;
        let table = rec.rope_rows(&RopeTable::new(m.head_dim, 1e6));
        let x = ops::rms_norm(rec, h, Some(self.norms[0]), EPS);
        let q = ops::matmul(rec, self.q, x).heads(m.heads);
        let k = ops::matmul(rec, self.k, x).heads(m.kv_heads);
        let v = ops::matmul(rec, self.v, x).heads(m.kv_heads);
        let (q, k) = (ops::rms_norm(rec, q, Some(self.head_norms[0]), EPS), ops::rms_norm(rec, k, Some(self.head_norms[1]), EPS));
        let (q, k) = (ops::rope(rec, q, table), ops::rope(rec, k, table));
        let kv = KvState::new(rec.state(0), rec.state(1));
        let kv = ops::kv_append(rec, kv, k, v);
        let attend = Attend { mask: cpu_ref::Mask::Causal, scale: 0.088, softcap: None };
        let a = ops::attention(rec, q, kv, m.kv_heads, attend).flat();
        let a = ops::matmul(rec, self.output, a);
        let h = ops::add(rec, h, a);
        let x = ops::rms_norm(rec, h, Some(self.norms[1]), EPS);
        let (gate, up) = (ops::matmul(rec, self.gate, x), ops::matmul(rec, self.up, x));
        let y = if m.gelu { ops::geglu(rec, gate, up) } else { ops::swiglu(rec, gate, up) };
        let y = ops::matmul(rec, self.down, y);
        ops::add(rec, h, y)
    }
}

/// The layer of a model for one row, for batches and for a chunk, precise and fast.
pub fn layer(c: &mut Criterion, device: &Device, m: &Model) {
    let kinds = [StateKind::kv(cpu_ref::KvType::F16, m.kv_heads * m.head_dim); 2];
    for (fast, mode) in [(false, "precise"), (true, "fast")] {
        for &rows in [1].iter().chain(batches(device)).chain(&[chunk(device)]) {
            let mut b = Bench::new(device, &format!("{} layer {mode} s{CONTEXT}", m.name), rows, &kinds);
            let layer = Layer::new(&mut b, m, m.types[0]);
            let h = b.tensor(Lead::Step, m.embedding);
            let y = layer.record(&mut b, m, h);
            b.rec.output(y);
            b.timed(c, 1, &PlanOptions { fast, ..PlanOptions::default() });
        }
    }
}
