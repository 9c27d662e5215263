//! Both products of a gated activation of a few rows, the activation and its packing in one kernel. Made by the planner, never recorded.

use super::glu_pack_q8::GluPackQ8;
use super::matmul::Matmul;
use super::matmul_few_q8::{SHORT, steps};
use super::matmul_few_q8_group::joins;
use super::matmul_vec_q8::matmul_q8;
use super::pack_q8::BLOCK;
use super::{Io, Op, Operation, Work, geglu, pack_q8, rms_norm, swiglu};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Dispatch, Grid, Lower, Makers, fixed};
use crate::row::Row;
use crate::tensor::{Counts, Tensor};

kernel! {
    MATMUL_FEW_Q8_GLU_2_SILU: "matmul_few_q8_glu_2_silu",
    entry: "matmul_few_q8_glu",
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_2.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, exchange: u32 },
    bindings: Bind { x: Read, gate: Groups, up: Groups, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-4,
}

kernel! {
    MATMUL_FEW_Q8_GLU_2_GELU: "matmul_few_q8_glu_2_gelu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_2.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GLU_4_SILU: "matmul_few_q8_glu_4_silu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_4.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GLU_4_GELU: "matmul_few_q8_glu_4_gelu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_4.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GLU_8_SILU: "matmul_few_q8_glu_8_silu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_8.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GLU_8_GELU: "matmul_few_q8_glu_8_gelu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_8.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// By powers of two of rows of activations: 2, 4 and 8; with silu and gelu.
const ROWS: [[&Row; 2]; 3] = [
    [&MATMUL_FEW_Q8_GLU_2_SILU, &MATMUL_FEW_Q8_GLU_2_GELU],
    [&MATMUL_FEW_Q8_GLU_4_SILU, &MATMUL_FEW_Q8_GLU_4_GELU],
    [&MATMUL_FEW_Q8_GLU_8_SILU, &MATMUL_FEW_Q8_GLU_8_GELU],
];

/// packed = 8 bits of activation(gate x) * (up x), row by row.
#[derive(Clone, Debug)]
pub struct MatmulFewQ8Glu {
    pub gate: Matmul,
    pub up: Matmul,
    /// gelu (tanh form), or silu.
    pub gelu: bool,
    pub packed: Tensor,
}

/// A packed gated activation of two products that nobody else reads.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::GluPackQ8(GluPackQ8 { gate, up, start: 0, gelu, packed }) = op else { return None };
    let product = |t: Tensor| match makers.alone(t)? {
        Op::Matmul(product) => Some(product),
        Op::MatmulFewQ8Group(group) if group.products.len() == 2 => group.products.iter().find(|product| product.y.id == t.id),
        _ => None,
    };
    let (gate, up) = (product(*gate)?, product(*up)?);
    let alike = gate.x.id == up.x.id && (gate.w.ty, gate.w.rows) == (up.w.ty, up.w.rows) && gate.bias.is_none() && up.bias.is_none();
    let whole = gate.w.rows.is_multiple_of(BLOCK) && gate.w.cols > SHORT;
    if !alike || !whole || !joins(gate, makers.caps) || !joins(up, makers.caps) {
        return None;
    }
    let op = MatmulFewQ8Glu { gate: gate.clone(), up: up.clone(), gelu: *gelu, packed: *packed };
    Some(Absorbed { of: vec![gate.y, up.y], op: op.into(), early: false })
}

impl Operation for MatmulFewQ8Glu {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate.x], writes: vec![self.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.gate.work(counts).plus(self.up.work(counts))
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let (w, rows) = (self.gate.w, self.gate.x.shape.rows);
        let steps = steps(rows);
        let bind = Bind { x: self.gate.x.into(), gate: w.into(), up: self.up.w.into(), packed: self.packed.into() };
        let params = Params { k: w.cols, n: w.rows, rows, exchange: cx.caps.subgroup_size };
        let grid = Grid::PerRow { lead: fixed(1, 1), per_row: w.rows / BLOCK * rows.div_ceil(steps) };
        vec![Dispatch { row: ROWS[steps.ilog2() as usize - 1][usize::from(self.gelu)], ..bind.dispatch(params, grid) }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, for both activations, with and without a norm whose factor is left to them.
pub fn case(g: &mut Gen) -> Case {
    let (ty, rows) = (g.format_with(|f| f.units.is_some()), g.pick(&[2, 2, 4, 4, 5, 8, 9]));
    let (cols, n) = (256 * g.pick(&[5, 6, 17]), BLOCK * g.pick(&[1, 2, 3, 7]));
    let mut case = Case::new(rows);
    let x = case.tensor(g, cols);
    let x = if g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    let packed = pack_q8(&mut case.rec, x);
    let [gate, up] = [0, 1].map(|_| {
        let w = case.weight(g, ty, n, cols);
        matmul_q8(&mut case.rec, w, packed)
    });
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let packed = pack_q8(&mut case.rec, y);
    case.expect_as(packed, Compare::Packed { k: n });
    case
}
