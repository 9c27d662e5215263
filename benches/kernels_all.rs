//! Times the kernels at the shapes of four models, on the best adapter: time, GB/s and GFLOP/s of
//! one operation and of a planned layer. A software adapter runs only the smallest model. At the
//! end the benchmark lists the variants that did not run: the device lacks their features, or only
//! other models use them.
//!
//! Every plan repeats its operation, so that the cost of a submission is small per operation. Rates
//! count the bytes that an operation must move and the arithmetic that it must do, not the actual
//! work of a kernel.

use cpu_ref::{KvType, Mask};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gguf::GgmlType;
use kernels::Work;
use kernels::ops::{self, Attend};
use kernels::testing::Switches;
use kernels::testing::exec::profile::work;
use kernels::testing::graph::record;
use kernels::testing::kernel::format::random_block;
use kernels::testing::kernel::random::Gen;
use kernels::testing::language;
use kernels::testing::language::Primitive;
use kernels::testing::norm::{level_f16, pack_f16, pack_q8};
use kernels::{
    Class, Counts, Device, Executor, KvState, Lead, Plan, PlanOptions, Precision, RopeTable, SampleParams, Shape,
    StateKind, States, StepInput, Tensor, TensorBytes, Watch, Weight, Weights,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[path = "kernels_layer.rs"]
mod layer;
#[path = "kernels_models.rs"]
mod models;

use models::{MODELS, Model, OTHERS};

/// A recorder of primitives, because benchmarks also record packing, which only plans contain.
type Recorder = record::Recorder<Primitive>;

/// Number of positions of a state.
const CONTEXT: u32 = 1024;

/// Names of the variants that a plan ran.
static RUN: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// Rows of a chunk of a prompt. A software adapter runs nine, the fewest rows that use the kernels
/// for many rows.
fn chunk(device: &Device) -> u32 {
    if device.adapter().class == Class::Software { 9 } else { 128 }
}

/// Numbers of sequences of the batches. A software adapter runs only one of them.
fn batches(device: &Device) -> &'static [u32] {
    if device.adapter().class == Class::Software { &[8] } else { &[2, 4, 8, 16, 32, 64] }
}

/// One operation to time: its inputs, and a plan that repeats it.
struct Bench {
    name: String,
    g: Gen,
    rec: Recorder,
    executor: Executor,
    weights: Weights,
    kinds: Vec<StateKind>,
    input: StepInput,
}

impl Bench {
    /// An operation on `rows` rows that end at the second to last position, with these states.
    fn new(device: &Device, name: &str, rows: u32, kinds: &[StateKind]) -> Self {
        let executor = Executor::Gpu(device.clone());
        let input = StepInput {
            positions: (CONTEXT - 1 - rows..CONTEXT - 1).collect(),
            sequences: vec![0; rows as usize],
            out_rows: (0..rows).collect(),
            sampling: vec![SampleParams { temperature: 0.8, top_k: 40, ..SampleParams::default() }; rows as usize],
            ..StepInput::default()
        };
        let rec = Recorder::new(Counts { step: rows, out: rows }, kinds);
        let weights = Weights::new(&executor);
        Self { name: format!("{name} t{rows}"), g: Gen::new(1), rec, executor, weights, kinds: kinds.to_vec(), input }
    }

    fn tensor(&mut self, lead: Lead, width: u32) -> Tensor {
        let rows = self.rec.capacity().step;
        self.input.host.push((0..rows * width).map(|_| self.g.unit()).collect());
        self.rec.host_input(self.input.host.len() as u32 - 1, Shape::new(lead, rows, width))
    }

    fn matrix(&mut self, ty: GgmlType, rows: u32, cols: u32) -> Weight {
        let blocks = rows as usize * cols as usize / ty.block_size();
        let bytes: Arc<[u8]> = match ty {
            GgmlType::F16 => (0..blocks).flat_map(|_| half::f16::from_f32(self.g.unit()).to_le_bytes()).collect(),
            _ => (0..blocks).flat_map(|_| random_block(ty, &mut || self.g.bits())).collect(),
        };
        self.weights.matrix("w", ty, rows, cols, &TensorBytes::Owned(bytes)).expect("room for a weight")
    }

    fn vector(&mut self, cols: u32) -> Weight {
        let values = (0..cols).map(|_| self.g.unit()).collect();
        self.weights.vector("w", values)
    }

    /// Times the operations that `record` appends, `repeats` times in one plan.
    fn run(mut self, c: &mut Criterion, repeats: u32, mut record: impl FnMut(&mut Recorder)) {
        (0..repeats).for_each(|_| record(&mut self.rec));
        self.timed(c, repeats, &PlanOptions::plain());
    }

    /// Times the recorded plan, which holds `repeats` copies of the operation.
    fn timed(self, c: &mut Criterion, repeats: u32, options: &PlanOptions) {
        let sequences = self.input.sequences.iter().max().map_or(1, |last| last + 1);
        let mut states = States::new(&self.executor, &self.kinds, sequences, CONTEXT).expect("room for the states");
        let mut plan = self
            .executor
            .plan(self.rec, &Arc::new(self.weights.load().expect("room for the weights")), options)
            .expect("a plan");
        let steps = plan.planned().map_or(&[][..], |planned| &planned.dispatches);
        let steps: Vec<_> = steps.iter().filter(|step| step.dispatch.when.holds(&self.input)).collect();
        RUN.lock().expect("no panic").extend(steps.iter().map(|step| step.shader.variant.name));
        let all = steps.into_iter().map(|step| work(step, &states, &self.input)).fold(Work::default(), Work::plus);
        let one = all.divided(u64::from(repeats));
        // Drivers compile at the first run, so one run comes before the timing.
        once(&mut plan, &mut states, &self.input, 1);
        let (mut spent, mut runs) = (Duration::ZERO, 0);
        let mut group = c.benchmark_group("kernels");
        group.throughput(Throughput::BytesDecimal(one.bytes));
        group.bench_function(&self.name, |b| {
            b.iter_custom(|iterations| {
                let time = once(&mut plan, &mut states, &self.input, iterations) / repeats;
                (spent, runs) = (spent + time, runs + iterations);
                time
            });
        });
        group.finish();
        if runs > 0 {
            let ns = spent.as_secs_f64() * 1e9 / runs as f64;
            println!(
                "{:<40} {:>10.1} us {:>9.2} GB/s {:>9.2} GFLOP/s",
                self.name,
                ns / 1e3,
                one.bytes as f64 / ns,
                one.flops as f64 / ns
            );
        }
    }
}

fn once(plan: &mut Plan, states: &mut States, input: &StepInput, iterations: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..iterations {
        plan.run(states, input, Watch::default()).and_then(kernels::Pending::wait).expect("a run");
    }
    start.elapsed()
}

fn products(c: &mut Criterion, device: &Device, m: &Model) {
    let (d, attended) = (m.embedding, m.heads * m.head_dim);
    for &ty in m.types {
        let name = ty.name().to_lowercase();
        let shapes = BTreeSet::from([(attended, d), (d, attended), (m.ffn, d), (d, m.ffn)]);
        for ((out, of), rows) in shapes.into_iter().flat_map(|shape| [(shape, 1), (shape, chunk(device))]) {
            let stem = if rows == 1 { "matmul_vec" } else { "matmul" };
            let mut b = Bench::new(device, &format!("{} {stem} {name} {out}x{of}", m.name), rows, &[]);
            let (w, x) = (b.matrix(ty, out, of), b.tensor(Lead::Step, of));
            b.run(c, if rows == 1 { 16 } else { 1 }, |rec| {
                ops::matmul(rec, w, x);
            });
        }
        let mut b = Bench::new(device, &format!("{} embed {name}", m.name), chunk(device), &[StateKind::Tokens]);
        let table = b.matrix(ty, 64, d);
        let tokens = b.rec.state(0);
        b.run(c, 16, |rec| {
            ops::embed(rec, table, tokens);
        });
    }
}

/// Number of experts, number of experts per row, and width of one expert.
const EXPERTS: u32 = 128;
const CHOSEN: u32 = 8;
const EXPERT_FFN: u32 = 384;

/// The embedding length of models with experts of this size.
const EMBEDDING: u32 = 1024;

fn experts(c: &mut Criterion, device: &Device) {
    for rows in [1, chunk(device)] {
        let mut b = Bench::new(device, "route", rows, &[]);
        let logits = b.tensor(Lead::Step, EXPERTS);
        b.run(c, 16, |rec| {
            ops::route(rec, logits, CHOSEN, true, None);
        });
        for ty in [GgmlType::Q8_0, GgmlType::Q4_K] {
            let stem = if rows == 1 { "matmul_vec_experts" } else { "matmul_experts" };
            let mut b = Bench::new(
                device,
                &format!("{stem} {} {EXPERTS}x{EXPERT_FFN}x{EMBEDDING}", ty.name().to_lowercase()),
                rows,
                &[],
            );
            let (w, x) = (b.matrix(ty, EXPERTS * EXPERT_FFN, EMBEDDING), b.tensor(Lead::Step, EMBEDDING));
            let logits = b.tensor(Lead::Step, EXPERTS);
            let routes = ops::route(&mut b.rec, logits, CHOSEN, true, None);
            b.run(c, if rows == 1 { 16 } else { 2 }, |rec| {
                ops::matmul_experts(rec, w, 0..EXPERT_FFN, x, &routes);
            });
        }
        let mut b = Bench::new(device, "combine_experts", rows, &[]);
        let (x, weights) = (b.tensor(Lead::Step, CHOSEN * EMBEDDING).heads(CHOSEN), b.tensor(Lead::Step, CHOSEN));
        b.run(c, 16, |rec| {
            ops::combine_experts(rec, x, weights);
        });
    }
}

/// A number of columns and of weight rows that is not a multiple of 4. Separate kernels serve such
/// shapes.
const ODD: u32 = 1023;

fn tails(c: &mut Criterion, device: &Device) {
    for rows in [1, chunk(device)] {
        let mut b = Bench::new(device, &format!("matmul tail f16 {ODD}x{ODD}"), rows, &[]);
        let (w, x) = (b.matrix(GgmlType::F16, ODD, ODD), b.tensor(Lead::Step, ODD));
        b.run(c, 4, |rec| {
            ops::matmul(rec, w, x);
        });
        let mut b = Bench::new(device, &format!("matmul_experts tail f16 8x{EXPERT_FFN}x{ODD}"), rows, &[]);
        let (w, x) = (b.matrix(GgmlType::F16, 8 * EXPERT_FFN, ODD), b.tensor(Lead::Step, ODD));
        let logits = b.tensor(Lead::Step, 8);
        let routes = ops::route(&mut b.rec, logits, 2, true, None);
        b.run(c, 4, |rec| {
            ops::matmul_experts(rec, w, 0..EXPERT_FFN, x, &routes);
        });
    }
    for ty in [GgmlType::F16, GgmlType::Q8_0] {
        let mut b = Bench::new(
            device,
            &format!("matmul fast tail {} {ODD}x{EMBEDDING}", ty.name().to_lowercase()),
            chunk(device),
            &[],
        );
        let (w, x) = (b.matrix(ty, ODD, EMBEDDING), b.tensor(Lead::Step, EMBEDDING));
        let y = ops::matmul(&mut b.rec, w, x);
        b.rec.output(y);
        b.timed(c, 1, &PlanOptions::plain().precision(Precision::Fast));
    }
}

/// Operations on one and on two tensors.
type OfOne = fn(&mut Recorder, Tensor) -> Tensor;
type OfTwo = fn(&mut Recorder, Tensor, Tensor) -> Tensor;

fn elements(c: &mut Criterion, device: &Device, m: &Model) {
    for rows in [1, chunk(device)] {
        let two: [(&str, OfTwo); 4] =
            [("add", ops::add), ("mul", ops::mul), ("swiglu", ops::swiglu), ("geglu", ops::geglu)];
        for (name, op) in two {
            let mut b = Bench::new(device, &format!("{} {name}", m.name), rows, &[]);
            let (x, y) = (b.tensor(Lead::Step, m.ffn), b.tensor(Lead::Step, m.ffn));
            b.run(c, 16, |rec| {
                op(rec, x, y);
            });
        }
        let one: [(&str, OfOne); 7] = [
            ("silu", ops::silu),
            ("gelu", ops::gelu),
            ("scale", |rec, x| ops::scale(rec, x, 0.5)),
            ("softcap", |rec, x| ops::softcap(rec, x, 30.0)),
            ("gather_rows", ops::gather_rows),
            ("pack_q8", pack_q8::pack_q8),
            ("pack_f16", |rec, x| pack_f16::pack_f16(rec, x).1),
        ];
        for (name, op) in one {
            let mut b = Bench::new(device, &format!("{} {name}", m.name), rows, &[]);
            let x = b.tensor(Lead::Step, m.ffn);
            b.run(c, 16, |rec| {
                op(rec, x);
            });
        }
        let mut b = Bench::new(device, &format!("{} pack_f16, level_f16", m.name), rows, &[]);
        let (x, tops) = (b.tensor(Lead::Step, m.ffn), b.tensor(Lead::Step, m.ffn / 32));
        b.run(c, 16, |rec| {
            let (_, halves) = pack_f16::pack_f16(rec, x);
            level_f16::level_f16(rec, tops, halves);
        });
        let mut b = Bench::new(device, &format!("{} mul_sigmoid", m.name), rows, &[]);
        let (x, gate) = (b.tensor(Lead::Step, m.embedding), b.tensor(Lead::Step, 1));
        b.run(c, 16, |rec| {
            ops::mul_sigmoid(rec, x, gate);
        });
        let mut b = Bench::new(device, &format!("{} rms_norm", m.name), rows, &[]);
        let (w, x) = (b.vector(m.embedding), b.tensor(Lead::Step, m.embedding));
        b.run(c, 16, |rec| {
            ops::rms_norm(rec, x, Some(w), 1e-6);
        });
        let mut b = Bench::new(device, &format!("{} add_rms_norm", m.name), rows, &[]);
        let (w, x, y) = (b.vector(m.embedding), b.tensor(Lead::Step, m.embedding), b.tensor(Lead::Step, m.embedding));
        b.run(c, 16, |rec| {
            let h = ops::add(rec, x, y);
            ops::rms_norm(rec, h, Some(w), 1e-6);
        });
        let mut b = Bench::new(device, &format!("{} gaussian_top_k", m.name), rows, &[]);
        let x = b.tensor(Lead::Step, m.ffn);
        b.run(c, 16, |rec| {
            ops::gaussian_top_k(rec, x, 1.645);
        });
        let mut b = Bench::new(device, &format!("{} match_rms", m.name), rows, &[]);
        let (x, y) = (b.tensor(Lead::Step, m.embedding), b.tensor(Lead::Step, m.embedding));
        b.run(c, 16, |rec| {
            ops::match_rms(rec, x, y, 1e-5);
        });
        let mut b = Bench::new(device, &format!("{} add_weighted 4", m.name), rows, &[]);
        let x = [(); 4].map(|()| b.tensor(Lead::Step, m.embedding));
        let weights = b.tensor(Lead::Step, 16);
        b.run(c, 16, |rec| {
            ops::add_weighted(rec, x[0], &x, ops::RowWeights { c: weights, first: 4, shift: 0.0 });
        });
        let mut b = Bench::new(device, &format!("{} rope", m.name), rows, &[]);
        let table = b.rec.rope_rows(&RopeTable::new(m.head_dim, 1e6));
        let x = b.tensor(Lead::Step, m.heads * m.head_dim).heads(m.heads);
        b.run(c, 16, |rec| {
            ops::rope(rec, x, table);
        });
    }
}

/// Attention with head lengths that the models of the list do not use or use only in some layers:
/// Qwen2.5-0.5B's, and the global layers' of Gemma 4 E2B.
fn lengths(c: &mut Criterion, device: &Device) {
    for (name, heads) in [("qwen2.5-0.5b", [14, 2, 64]), ("gemma4-e2b global", [8, 1, 512])] {
        attend(c, device, name, heads, KvType::F16, chunk(device));
    }
}

/// Attention of `rows` rows with `[heads, kv heads, elements per head]`.
fn attend(c: &mut Criterion, device: &Device, name: &str, [heads, kv_heads, dim]: [u32; 3], ty: KvType, rows: u32) {
    let kinds = [StateKind::kv(ty, kv_heads * dim); 2];
    let mut b = Bench::new(device, &format!("{name} attention {ty:?} s{CONTEXT}"), rows, &kinds);
    let q = b.tensor(Lead::Step, heads * dim).heads(heads);
    let kv = KvState::new(b.rec.state(0), b.rec.state(1));
    let attend = Attend { mask: Mask::Causal, scale: 0.088, softcap: None };
    b.run(c, if rows == 1 { 4 } else { 1 }, |rec| {
        ops::attention(rec, q, kv, kv_heads, attend);
    });
}

fn attention(c: &mut Criterion, device: &Device, m: &Model) {
    let kv_heads = m.kv_heads;
    for ty in [KvType::F16, KvType::Q8_0] {
        let kinds = [StateKind::kv(ty, kv_heads * m.head_dim); 2];
        for rows in [1, chunk(device)] {
            attend(c, device, m.name, [m.heads, kv_heads, m.head_dim], ty, rows);
            let mut b = Bench::new(device, &format!("{} kv_append {ty:?}", m.name), rows, &kinds);
            let (k, v) = (b.tensor(Lead::Step, kv_heads * m.head_dim), b.tensor(Lead::Step, kv_heads * m.head_dim));
            let (k, v) = (k.heads(kv_heads), v.heads(kv_heads));
            let kv = KvState::new(b.rec.state(0), b.rec.state(1));
            b.run(c, 16, |rec| {
                ops::kv_append(rec, kv, k, v);
            });
        }
    }
}

fn logits(c: &mut Criterion, device: &Device, m: &Model) {
    let one: [(&str, OfOne); 4] = [
        ("argmax", ops::argmax),
        ("softmax", ops::softmax),
        ("log_softmax", ops::log_softmax),
        ("top_k 40", |rec, x| ops::top_k(rec, x, 40)),
    ];
    for (name, op) in one {
        let mut b = Bench::new(device, &format!("{} {name}", m.name), 1, &[]);
        let x = b.tensor(Lead::Out, m.vocabulary);
        b.run(c, 16, |rec| {
            op(rec, x);
        });
    }
    let mut b = Bench::new(device, &format!("{} penalize and sample", m.name), 1, &[StateKind::Tokens]);
    let x = b.tensor(Lead::Out, m.vocabulary);
    let tokens = b.rec.state(0);
    b.run(c, 16, |rec| {
        let logits = ops::penalize(rec, x, tokens);
        ops::sample(rec, logits, x, tokens);
    });
}

fn kernels(c: &mut Criterion) {
    let device =
        Device::auto().unwrap_or_else(|e| panic!("{e}; install a driver (Debian: mesa-vulkan-drivers libvulkan1)"));
    println!("on {} ({:?})", device.adapter().name, device.adapter().class);
    experts(c, &device);
    tails(c, &device);
    lengths(c, &device);
    let software = device.adapter().class == Class::Software;
    OTHERS.iter().filter(|_| !software).for_each(|m| layer::layers(c, &device, m));
    for m in if software { &MODELS[..1] } else { &MODELS } {
        products(c, &device, m);
        elements(c, &device, m);
        attention(c, &device, m);
        logits(c, &device, m);
        layer::layers(c, &device, m);
    }
    let run = RUN.lock().expect("no panic");
    let left: Vec<&str> = language::variants().map(|variant| variant.name).filter(|name| !run.contains(name)).collect();
    println!(
        "{} variants were run; not run here: {}",
        run.len(),
        if left.is_empty() { "none".to_string() } else { left.join(", ") }
    );
}

criterion_group! {
    name = all;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    targets = kernels
}
criterion_main!(all);
