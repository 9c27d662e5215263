//! The layers that are timed to choose between kernels. They have the shapes of a model and are
//! planned like a model.

use crate::attention::attention::{Attend, Attention};
use crate::caps::Caps;
use crate::caps::table::Table;
use crate::device::Device;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::cuts::Submits;
use crate::exec::gpu::GpuPlan;
use crate::exec::states::States;
use crate::exec::weights::{TensorBytes, Weights};
use crate::exec::{Compiled, Watch};
use crate::graph::input::StepInput;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{Counts, KvState, Lead, Shape, StateKind, Tensor, Weight};
use crate::kernel::format;
use crate::kernel::random::Gen;
use crate::language::Op;
use crate::native::measure;
use crate::plan::{PlanOptions, Precision, plan};
use crate::platform::block_on;
use crate::{Recorder, ops};
use cpu_ref::{KvType, Mask};
use gguf::GgmlType;
use std::sync::Arc;

/// The widths of a model that decide which kernel serves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shapes {
    /// The type of most weights.
    pub ty: GgmlType,
    /// Columns of the first products of a layer.
    pub width: u32,
    /// Columns of the last product of a layer.
    pub hidden: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
}

impl Shapes {
    /// Shapes of Qwen3-8B, for discrete devices.
    pub const LARGE: Self =
        Self { ty: format::USUAL, width: 4096, hidden: 12_288, heads: 32, kv_heads: 8, head_dim: 128 };
    /// Shapes of Qwen2.5-1.5B.
    pub const SMALL: Self =
        Self { ty: format::USUAL, width: 1536, hidden: 8960, heads: 12, kv_heads: 2, head_dim: 128 };
    /// Shapes of no model, small enough to be timed on a software adapter.
    pub const TINY: Self = Self { ty: format::USUAL, width: 512, hidden: 1536, heads: 4, kv_heads: 2, head_dim: 64 };

    /// Shapes of a recorded model: its weight with the longest rows, and its first attention. None
    /// if the recording has no product in a layer or no attention.
    #[must_use]
    pub fn of(rec: &Recorder) -> Option<Self> {
        let products = || {
            rec.nodes
                .iter()
                .filter(|node| node.stage.layer.is_some())
                .filter_map(|node| if let Op::Matmul(m) = &node.op { Some(m.w) } else { None })
        };
        let longest = products().max_by_key(|w| w.cols)?;
        let attention = |node: &crate::graph::record::Node<Op>| match &node.op {
            Op::Attention(Attention { q, kv_heads, .. }) => Some((q.shape.heads, *kv_heads, q.shape.dim)),
            _ => None,
        };
        let (heads, kv_heads, head_dim) = rec.nodes.iter().find_map(attention)?;
        Some(Self { ty: longest.ty, width: longest.rows, hidden: longest.cols, heads, kv_heads, head_dim })
    }
}

/// A sequence of operations to time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Norm, gate and up products, activation, down product and sum, for `rows` rows.
    Mlp { rows: u32, width: u32, hidden: u32 },
    /// Rotations, append and attention of one row over `keys` keys, perhaps with a window. Products
    /// follow it, whose weights fill the device's caches: in a model too, the caches hold weights
    /// when a layer reads its keys, not the keys of the previous step.
    Attention { keys: u32, window: Option<u32> },
    /// A norm of one row, three products with it, and their sum.
    Group { width: u32 },
}

/// A probe at the widths of a model.
#[derive(Copy, Clone, Debug)]
pub struct Layers {
    pub probe: Probe,
    pub shapes: Shapes,
}

impl Layers {
    /// Number of layers, which run one after the other. Several layers make the cost of the
    /// submission small. One is enough for many rows, and drivers abort submits that take seconds.
    fn count(&self) -> usize {
        if matches!(self.probe, Probe::Mlp { rows: 65.., .. }) { 1 } else { 4 }
    }

    /// The weights of a layer as (rows, columns).
    fn matrices(&self) -> Vec<(u32, u32)> {
        match self.probe {
            Probe::Mlp { width, hidden, .. } => vec![(hidden, width), (hidden, width), (width, hidden)],
            Probe::Attention { .. } => {
                let (width, hidden) = (self.shapes.heads * self.shapes.head_dim, self.shapes.hidden);
                vec![(hidden, width), (width, hidden)]
            }
            Probe::Group { width } => vec![(width, width); 3],
        }
    }

    fn kinds(&self) -> Vec<StateKind> {
        let kind = StateKind::kv(KvType::F16, self.shapes.kv_heads * self.shapes.head_dim);
        if matches!(self.probe, Probe::Attention { .. }) { vec![kind; 2 * self.count()] } else { vec![] }
    }

    /// Columns of the input of the first layer.
    fn width(&self) -> u32 {
        match self.probe {
            Probe::Mlp { width, .. } | Probe::Group { width } => width,
            Probe::Attention { .. } => self.shapes.heads * self.shapes.head_dim,
        }
    }

    /// Rows of the step, and number of positions in its sequence.
    fn rows(&self) -> (u32, u32) {
        match self.probe {
            Probe::Mlp { rows, .. } => (rows, rows),
            Probe::Attention { keys, .. } => (1, keys),
            Probe::Group { .. } => (1, 1),
        }
    }

    /// Whether these weights have the shapes of this probe.
    pub fn reads(&self, weights: &Weights) -> bool {
        weights.iter().map(|(_, w)| (w.rows, w.cols)).eq(self.matrices())
    }

    /// The weights of the probe: a few random rows, repeated.
    pub fn weights(&self, device: &Device) -> Result<Weights, Error> {
        const DRAWN: u32 = 16;
        let (ty, mut weights) = (self.shapes.ty, Weights::new(&Executor::Gpu(device.clone())));
        for (rows, cols) in self.matrices() {
            let drawn = Gen::new(1).weight(ty, DRAWN, cols);
            let mut whole = drawn.repeat(rows.div_ceil(DRAWN) as usize);
            whole.truncate(drawn.len() / DRAWN as usize * rows as usize);
            weights.matrix("a matrix", ty, rows, cols, &TensorBytes::Owned(whole.into()))?;
        }
        weights.load()
    }

    fn recording(&self, weights: &Weights) -> Recorder {
        let mut rec = Recorder::new(Counts { step: self.rows().0, out: 1 }, &self.kinds());
        let weights: Vec<Weight> = weights.iter().map(|(_, w)| w).collect();
        let first = rec.host_input(0, Shape::new(Lead::Step, self.rows().0, self.width()));
        let last = match self.probe {
            Probe::Mlp { .. } => (0..self.count()).fold(first, |h, _| mlp(&mut rec, &weights, h)),
            Probe::Attention { window, .. } => {
                let mask = window.map_or(Mask::Causal, |window| Mask::Window(window as usize));
                (0..self.count()).fold(first, |q, layer| self.attention(&mut rec, layer, mask, &weights, q))
            }
            Probe::Group { .. } => (0..self.count()).fold(first, |h, _| group(&mut rec, &weights, h)),
        };
        let last = ops::gather_rows(&mut rec, last);
        rec.output(last);
        rec
    }

    fn attention(&self, rec: &mut Recorder, layer: usize, mask: Mask, weights: &[Weight], q: Tensor) -> Tensor {
        let Shapes { heads, kv_heads, head_dim, .. } = self.shapes;
        let table = rec.rope_rows(&RopeTable::new(head_dim, 1e4));
        let attend = Attend { mask, scale: 1.0 / (head_dim as f32).sqrt(), softcap: None };
        let mut input =
            |n: usize| rec.host_input(n as u32, Shape::new(Lead::Step, 1, kv_heads * head_dim)).heads(kv_heads);
        let (k, v) = (input(2 * layer + 1), input(2 * layer + 2));
        let (q, k) = (ops::rope(rec, q.heads(heads), table), ops::rope(rec, k, table));
        let kv = KvState::new(rec.state(2 * layer), rec.state(2 * layer + 1));
        let kv = ops::kv_append(rec, kv, k, v);
        let y = ops::attention(rec, q, kv, kv_heads, attend).flat();
        weights.iter().fold(y, |y, w| ops::matmul(rec, *w, y))
    }

    fn input(&self) -> StepInput {
        let Shapes { kv_heads, head_dim, .. } = self.shapes;
        let (rows, positions) = self.rows();
        let mut g = Gen::new(2);
        let mut values = |count: u32| -> Vec<f32> { (0..count).map(|_| g.unit()).collect() };
        let keys_and_values = self.kinds().len();
        let host = std::iter::once(rows * self.width())
            .chain(vec![kv_heads * head_dim; keys_and_values])
            .map(&mut values)
            .collect();
        let positions: Vec<u32> = (positions - rows..positions).collect();
        StepInput { sequences: vec![0; rows as usize], positions, out_rows: vec![0], host, ..StepInput::default() }
    }

    /// The shaders that a table selects, with their grids. If two tables select the same shaders
    /// and grids, there is nothing to compare.
    pub fn shaders(&self, caps: &Caps, table: Table) -> Result<Vec<String>, Error> {
        let mut dry = Weights::new(&Executor::Cpu);
        for (rows, cols) in self.matrices() {
            dry.matrix("a matrix", self.shapes.ty, rows, cols, &TensorBytes::Owned([].into()))?;
        }
        let caps = Caps { table, ..caps.clone() };
        let (planned, input) = (plan(&self.recording(&dry), &caps, &options())?, self.input());
        let ran = planned.dispatches.iter().filter(|placed| placed.dispatch.when.holds(&input));
        Ok(ran
            .map(|placed| {
                format!("{} {:?}", placed.shader.label(), placed.dispatch.grid.at(input.counts(), caps.max_grid))
            })
            .collect())
    }
}

/// The sum of three products of norm h.
fn group(rec: &mut Recorder, weights: &[Weight], h: Tensor) -> Tensor {
    let x = ops::rms_norm(rec, h, None, 1e-6);
    let products: Vec<Tensor> = weights.iter().map(|w| ops::matmul(rec, *w, x)).collect();
    products.into_iter().fold(h, |h, y| ops::add(rec, h, y))
}

/// h + down(silu(gate(norm h)) up(norm h)).
fn mlp(rec: &mut Recorder, weights: &[Weight], h: Tensor) -> Tensor {
    let [gate, up, down] = *weights else { unreachable!("a probe of products has three weights") };
    let x = ops::rms_norm(rec, h, None, 1e-6);
    let (gate, up) = (ops::matmul(rec, gate, x), ops::matmul(rec, up, x));
    let y = ops::swiglu(rec, gate, up);
    let y = ops::matmul(rec, down, y);
    ops::add(rec, h, y)
}

/// A probe that is planned with one table.
pub struct Planned {
    plan: Box<GpuPlan>,
    states: States,
    input: StepInput,
}

impl Planned {
    pub fn new(device: &Device, layers: &Layers, weights: &Arc<Weights>, table: Table) -> Result<Self, Error> {
        let executor = Executor::Gpu(device.with_table(table));
        let states = States::new(&executor, &layers.kinds(), 1, layers.rows().1)?;
        match executor.plan(layers.recording(weights), weights, &options())?.0 {
            Compiled::Gpu(plan) => Ok(Self { plan, states, input: layers.input() }),
            Compiled::Cpu(_) => unreachable!("planned for a GPU"),
        }
    }

    /// Seconds of one run.
    pub fn seconds(&mut self) -> Result<f64, Error> {
        let encoder = block_on(self.plan.encode(&self.states, &self.input, Submits::Whole, Watch::default(), &mut ()))?;
        measure::seconds(self.plan.device(), encoder.finish())
    }
}

/// The plan options of a session at the default precision. Other precisions have few choices.
fn options() -> PlanOptions {
    PlanOptions::plain().precision(Precision::Fast).specialize(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_of_a_recording_are_those_of_its_longest_rows_and_its_attention() {
        let mut dry = Weights::new(&Executor::Cpu);
        let of = |probe| Layers { probe, shapes: Shapes::TINY };
        for (rows, cols) in of(Probe::Mlp { rows: 1, width: 512, hidden: 1536 }).matrices() {
            dry.matrix("a matrix", GgmlType::Q4_K, rows, cols, &TensorBytes::Owned([].into())).unwrap();
        }
        let attention = of(Probe::Attention { keys: 8, window: None });
        let mut rec = Recorder::new(Counts { step: 1, out: 1 }, &attention.kinds());
        rec.layer(Some(0));
        let q = rec.host_input(0, Shape::new(Lead::Step, 1, attention.width()));
        attention.attention(&mut rec, 0, Mask::Causal, &[], q);
        assert_eq!(Shapes::of(&rec), None, "no products");
        let h = rec.host_input(9, Shape::new(Lead::Step, 1, 512));
        let weights: Vec<Weight> = dry.iter().map(|(_, w)| w).collect();
        mlp(&mut rec, &weights, h);
        assert_eq!(Shapes::of(&rec), Some(Shapes::TINY));
    }
}
