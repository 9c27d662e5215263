//! Both products of a gated activation, the activation and its packing in one kernel, of one row or of a few. Made by the planner, never recorded.

use super::glu_pack_q8::GluPackQ8;
use super::matmul::Matmul;
use super::matmul_vec_group::joins;
use super::matmul_vec_q8::matmul_q8;
use super::pack_q8::{BLOCK, activations};
use super::{Io, Op, Operation, Work, geglu, matmul_few_q8_glu, pack_q8, swiglu};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Dispatch, Grid, Lower, Makers};
use crate::tensor::{Counts, Tensor};

kernel! {
    MATMUL_VEC_GLU_SILU: "matmul_vec_glu_silu",
    entry: "matmul_vec_glu",
    wgsl: [
        "matmul_vec_glu.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, exchange: u32 },
    bindings: Bind { x: Read, gate: Units, up: Units, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-4,
}

kernel! {
    MATMUL_VEC_GLU_GELU: "matmul_vec_glu_gelu" = MATMUL_VEC_GLU_SILU with
    wgsl: [
        "matmul_vec_glu.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl",
        "shared/grid.wgsl"
    ]
}

/// packed = 8 bits of activation(gate x) * (up x), row by row.
#[derive(Clone, Debug)]
pub struct MatmulGlu {
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
        Op::MatmulGroup(group) if group.products.len() == 2 => group.products.iter().find(|product| product.y.id == t.id),
        _ => None,
    };
    let (gate, up) = (product(*gate)?, product(*up)?);
    let alike = gate.x.id == up.x.id && (gate.w.ty, gate.w.rows) == (up.w.ty, up.w.rows) && gate.bias.is_none() && up.bias.is_none();
    if !alike || !gate.w.rows.is_multiple_of(BLOCK) || !joins(gate, makers.caps) || !joins(up, makers.caps) {
        return None;
    }
    let op = MatmulGlu { gate: gate.clone(), up: up.clone(), gelu: *gelu, packed: *packed };
    Some(Absorbed { of: vec![gate.y, up.y], op: op.into(), early: false })
}

impl Operation for MatmulGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate.x], writes: vec![self.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.gate.work(counts).plus(self.up.work(counts))
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        if self.gate.x.shape.rows > 1 {
            return vec![matmul_few_q8_glu::lower(self, cx)];
        }
        let w = self.gate.w;
        let bind = Bind { x: self.gate.x.into(), gate: w.into(), up: self.up.w.into(), packed: self.packed.into() };
        let params = Params { k: w.cols, n: w.rows, exchange: cx.caps.subgroup_size };
        let dispatch = bind.dispatch(params, Grid::PerRow { lead: self.gate.x.shape, per_row: w.rows / BLOCK });
        vec![if self.gelu { Dispatch { row: &MATMUL_VEC_GLU_GELU, ..dispatch } } else { dispatch }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, for both activations, with and without a norm whose factor is left to them.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let (cols, n) = (256 * g.pick(&[1, 2, 5, 9]), BLOCK * g.pick(&[1, 2, 3, 7]));
    let mut case = Case::new(1);
    let normed = g.coin();
    let packed = activations(&mut case, g, cols, normed);
    let [gate, up] = [0, 1].map(|_| {
        let w = case.weight(g, ty, n, cols);
        matmul_q8(&mut case.rec, w, packed)
    });
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let packed = pack_q8(&mut case.rec, y);
    case.expect_as(packed, Compare::Packed { k: n });
    case
}
