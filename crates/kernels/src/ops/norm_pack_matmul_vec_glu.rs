//! Both products of a gated activation of one normed row, with the packing of that row and of the result, in one kernel. Made by the planner,
//! never recorded.

use super::matmul_vec_glu::MatmulGlu;
use super::matmul_vec_q8::matmul_q8;
use super::norm_pack_matmul_vec::{Normed, normed};
use super::pack_q8::BLOCK;
use super::{Io, Op, Operation, Work, geglu, pack_q8, swiglu};
use crate::compare::Compare;
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::tensor::Counts;

kernel! {
    NORM_PACK_MATMUL_VEC_GLU_SILU: "norm_pack_matmul_vec_glu_silu",
    entry: "norm_pack_matmul_vec_glu",
    wgsl: [
        "norm_pack_matmul_vec_glu.wgsl", "shared/acts_norm.wgsl", "shared/acts_own.wgsl", "shared/norm_share.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl",
        "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 },
    bindings: Bind { h: Read, u: Read, gate: Units, up: Units, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-4,
}

kernel! {
    NORM_PACK_MATMUL_VEC_GLU_GELU: "norm_pack_matmul_vec_glu_gelu" = NORM_PACK_MATMUL_VEC_GLU_SILU with
    wgsl: [
        "norm_pack_matmul_vec_glu.wgsl", "shared/acts_norm.wgsl", "shared/acts_own.wgsl", "shared/norm_share.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl",
        "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl",
        "shared/grid.wgsl"
    ]
}

/// Columns up to which it is faster to pack a row in every workgroup than once: 3072 results of 1024 columns gain 4 us of 32 (512 threads to a
/// block of them among it), 8960 of 1536 lose 2 (NVIDIA H200).
const MOST_COLS: u32 = 1024;

/// packed = 8 bits of activation(gate x) * (up x), with x = norm(h) u.
#[derive(Clone, Debug)]
pub struct NormPackMatmulVecGlu {
    pub row: Normed,
    pub glu: MatmulGlu,
}

/// A gated activation of a packed row that may pack it.
pub(crate) fn packing(row: &Normed, glu: &MatmulGlu, caps: &Caps) -> Option<Op> {
    let fits = row.h.shape.rows == 1 && row.h.shape.width() <= MOST_COLS && NORM_PACK_MATMUL_VEC_GLU_SILU.fits(caps);
    fits.then(|| NormPackMatmulVecGlu { row: row.clone(), glu: glu.clone() }.into())
}

impl Operation for NormPackMatmulVecGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.row.h], writes: vec![self.glu.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.glu.work(counts)
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let w = self.glu.gate.w;
        let params = Params {
            k: w.cols,
            n: w.rows,
            has_norm: u32::from(self.row.eps.is_some()),
            has_weight: u32::from(self.row.u.is_some()),
            exchange: cx.caps.subgroup_size,
            eps: self.row.eps.unwrap_or(0.0),
        };
        let (h, u) = (self.row.h.into(), self.row.u.into());
        let bind = Bind { h, u, gate: w.into(), up: self.glu.up.w.into(), packed: self.glu.packed.into() };
        let dispatch = bind.dispatch(params, Grid::PerRow { lead: self.row.h.shape, per_row: w.rows / BLOCK });
        vec![if self.glu.gelu { Dispatch { row: &NORM_PACK_MATMUL_VEC_GLU_GELU, ..dispatch } } else { dispatch }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, for both activations, of a row that is normed with and without a weight or not at all, of whole and half
/// eights of blocks.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let cols = if ty.block_size() == 32 { 32 * g.pick(&[1, 4, 8, 11, 24, 32]) } else { 256 * g.pick(&[1, 2, 3, 4]) };
    let n = BLOCK * g.pick(&[1, 2, 3, 7]);
    let mut case = Case::new(1);
    let x = normed(&mut case, g, cols).0;
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
