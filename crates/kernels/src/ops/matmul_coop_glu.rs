//! Two products of many rows with their gated activation, straight to f16, through cooperative matrices. Made by the planner, never recorded.

use super::level_f16::LevelF16;
use super::matmul::{Matmul, Operand, matmul};
use super::pack_f16::PackF16;
use super::matmul_coop::{DEPTH, TILE};
use super::{Io, Op, Operation, Work, geglu, swiglu};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::format;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, PlanOptions, Uses, parts};
use crate::record::{Node, Origin};
use crate::tensor::{Counts, Lead, Shape, Tensor, Weight};
use std::collections::HashMap;

kernel! {
    MATMUL_COOP_GLU_SILU: "matmul_coop_glu_silu",
    entry: "matmul_coop_glu",
    wgsl: ["matmul_coop_glu.wgsl", "shared/unit.wgsl", "shared/coop_groups.wgsl", "shared/half_scale.wgsl", "shared/coarse_scale.wgsl", "shared/silu4.wgsl"],
    params: Params { k: u32, n: u32, rows: u32 },
    bindings: Bind { x: Read, scales: Read, w: Groups, up: Beside, tops: Write, halves: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-6,
}

kernel! {
    MATMUL_COOP_GLU_GELU: "matmul_coop_glu_gelu" = MATMUL_COOP_GLU_SILU with
    wgsl: ["matmul_coop_glu.wgsl", "shared/unit.wgsl", "shared/coop_groups.wgsl", "shared/half_scale.wgsl", "shared/coarse_scale.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl"]
}

/// Columns of either weight per workgroup.
const COLUMNS: u32 = TILE / 2;
/// Columns that share a top.
const PART: u32 = 32;

/// tops, halves = activation(x gate^T) (x up^T) in f16, divided by a power of two for every 32 columns.
#[derive(Clone, Debug)]
pub struct MatmulCoopGlu {
    pub gate: Weight,
    pub up: Weight,
    pub x: Tensor,
    pub scales: Tensor,
    /// gelu (tanh form), or silu.
    pub gelu: bool,
    pub tops: Tensor,
    pub halves: Tensor,
}

/// Whether the tiles hold these two, whole.
fn serves(gate: Weight, up: Weight, caps: &Caps) -> bool {
    let alike = (gate.ty, gate.rows, gate.cols) == (up.ty, up.rows, up.cols);
    let in_groups = format::format(gate.ty).is_some_and(|f| f.units.is_some());
    let whole = gate.rows.is_multiple_of(COLUMNS) && gate.cols.is_multiple_of(DEPTH) && gate.cols <= caps.table.glu_columns;
    alike && in_groups && whole && MATMUL_COOP_GLU_SILU.fits(caps) && parts(caps, gate.ty, gate.rows, gate.cols).len() == 1
}

/// Joins every packing of a gated activation, which nobody else reads, with the activation and its two products.
pub(crate) fn join(nodes: Vec<Node>, origins: &mut Vec<(Origin, Shape)>, read_back: &[Tensor], caps: &Caps) -> Vec<Node> {
    let uses = Uses::of(&nodes, read_back);
    let mut makers: HashMap<u32, usize> = HashMap::new();
    let mut out: Vec<Option<Node>> = Vec::with_capacity(nodes.len());
    for Node { op, layer } in nodes {
        let made = |t: Tensor| makers.get(&t.id).copied().filter(|_| uses.once(t));
        let found = joined(&op, caps, |t| Some((made(t)?, &out[made(t)?].as_ref()?.op)));
        if let (Some((mut glu, of)), Op::PackF16(pack)) = (found, &op) {
            of.into_iter().for_each(|at| out[at] = None);
            let shape = Shape { heads: 1, dim: glu.gate.rows / PART, ..pack.halves.shape };
            origins.push((Origin::Made, shape));
            glu.tops = Tensor { id: origins.len() as u32 - 1, shape };
            let level = LevelF16 { tops: glu.tops, scales: pack.scales, halves: pack.halves };
            out.extend([glu.into(), level.into()].map(|op| Some(Node { op, layer })));
            continue;
        }
        for t in op.io().writes {
            makers.insert(t.id, out.len());
        }
        out.push(Some(Node { op, layer }));
    }
    out.into_iter().flatten().collect()
}

/// What a packing becomes, its tops still to be placed, and the operations that it does the work of.
fn joined<'a>(op: &Op, caps: &Caps, made: impl Fn(Tensor) -> Option<(usize, &'a Op)>) -> Option<(MatmulCoopGlu, [usize; 3])> {
    let Op::PackF16(pack @ PackF16 { slab: 0, scaled: true, .. }) = op else { return None };
    let (at, gate, up, gelu) = match made(pack.x)? {
        (at, Op::Swiglu(glu)) => (at, glu.gate, glu.up, false),
        (at, Op::Geglu(glu)) if glu.up.shape == glu.gate.shape => (at, glu.gate, glu.up, true),
        _ => return None,
    };
    let product = |t: Tensor| match made(t)? {
        (at, Op::Matmul(product @ Matmul { operand: Operand::F16 { scales }, bias: None, .. })) => Some((at, product.x, *scales, product.w)),
        _ => None,
    };
    let ((gate_at, x, scales, gate), (up_at, same_x, _, up)) = (product(gate)?, product(up)?);
    let glu = MatmulCoopGlu { gate, up, x, scales, gelu, tops: scales, halves: pack.halves };
    (x == same_x && serves(gate, up, caps)).then_some((glu, [at, gate_at, up_at]))
}

impl Operation for MatmulCoopGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.scales], writes: vec![self.tops, self.halves] }
    }

    fn work(&self, counts: Counts) -> Work {
        let (t, n, k) = (u64::from(self.x.shape.rows_at(counts)), u64::from(self.gate.rows), u64::from(self.gate.cols));
        let weight_bytes = 2 * n * self.gate.ty.row_bytes(self.gate.cols as usize).unwrap_or(0) as u64;
        Work { flops: 4 * t * n * k, bytes: weight_bytes + 2 * t * (n + k), weight_bytes }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { k: self.gate.cols, n: self.gate.rows, rows: self.x.shape.rows };
        let [x, scales, tops, halves] = [self.x, self.scales, self.tops, self.halves].map(Into::into);
        let bind = Bind { x, scales, w: self.gate.into(), up: self.up.into(), tops, halves };
        let dispatch = bind.dispatch(params, Grid::Tiles { lead: self.x.shape, tile: TILE, x: self.gate.rows / COLUMNS });
        vec![if self.gelu { Dispatch { row: &MATMUL_COOP_GLU_GELU, ..dispatch } } else { dispatch }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Rows far outside the range of f16, neighbours of different sizes.
fn uneven(case: &mut Case, g: &mut Gen, cols: u32) -> Tensor {
    let rows = case.input.positions.len() as u32;
    let values = (0..rows * cols).map(|i| g.unit() * [1e6, 2.5e5, 6.25e4][(i / cols % 3) as usize]).collect();
    case.given(Shape::new(Lead::Step, rows, cols), values)
}

/// The parts as a model records them, with the product that reads them: every format, tile edges, activations far outside the range of f16, and
/// parts of a row of very different sizes.
pub fn case(g: &mut Gen) -> Case {
    // The last row of a full plan is one of every eight that a subgroup has.
    let (rows, ty) = (g.pick(&[65, 127, 128, 129, 130, 138, 146, 154, 162, 178, 300]), g.format_with(|f| f.units.is_some()));
    let (cols, n) = (g.cols(ty).next_multiple_of(DEPTH), g.pick(&[64, 128, 192, 320]));
    let mut case = Case::new(rows);
    case.options = PlanOptions { fast: true, ..case.options };
    let [gate, up] = [(); 2].map(|()| case.weight(g, ty, n, cols));
    let width = g.pick(&[1, 64, 129]);
    let down = case.weight(g, gguf::GgmlType::F16, width, n);
    let x = if g.coin() { uneven(&mut case, g, cols) } else { case.tensor(g, cols) };
    let (gate, up) = (matmul(&mut case.rec, gate, x), matmul(&mut case.rec, up, x));
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let y = matmul(&mut case.rec, down, y);
    case.expect(y);
    case
}
