//! Both products of a gated activation and its packing, with the residual sum, norm and packing that make the row they read, in one kernel. Made by
//! the planner, never recorded.

use super::matmul_vec_glu::MatmulGlu;
use super::matmul_vec_q8::matmul_q8;
use super::norm_add::NormAdd;
use super::norm_add_matmul_vec::{makes, row};
use super::pack_q8::BLOCK;
use super::{Io, Op, Operation, Work, geglu, pack_q8};
use crate::compare::Compare;
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::tensor::Counts;

kernel! {
    NORM_ADD_MATMUL_VEC_GLU: "norm_add_matmul_vec_glu",
    entry: "norm_add_matmul_vec_glu",
    wgsl: [
        "norm_add_matmul_vec_glu.wgsl", "shared/acts_norm_add.wgsl", "shared/acts_norm_add_quads.wgsl", "shared/acts_own.wgsl",
        "shared/norm_share.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, n: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, exchange: u32, eps: f32, next_eps: f32
    },
    bindings: Bind { a: Read, b: Read, w: Read, s: Read, u: Read, h: Write, gate: Units, up: Units, packed: Write },
    cpu: cpu_ref::geglu,
    nmse: 1e-4,
}

/// Weight rows per workgroup.
const ROWS: u32 = 64;

/// packed = 8 bits of gelu(gate x) * (up x), with x the packed sum, which no other operation reads.
#[derive(Clone, Debug)]
pub struct NormAddMatmulVecGlu {
    pub sum: NormAdd,
    pub glu: MatmulGlu,
}

/// A gated activation that reads a packed sum.
pub(crate) fn inline(maker: &Op, reader: &Op, caps: &Caps) -> Option<Op> {
    let (Op::NormAdd(sum), Op::MatmulGlu(glu)) = (maker, reader) else { return None };
    let fits = glu.gelu && makes(sum, 2 * glu.gate.w.rows) && NORM_ADD_MATMUL_VEC_GLU.fits(caps);
    fits.then(|| NormAddMatmulVecGlu { sum: sum.clone(), glu: glu.clone() }.into())
}

impl Operation for NormAddMatmulVecGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.sum.a, self.sum.b], writes: vec![self.sum.h, self.glu.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.glu.work(counts)
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let (sum, w) = (&self.sum, self.glu.gate.w);
        let row = sum.flags();
        let params = Params {
            k: w.cols,
            n: w.rows,
            has_weight: row.has_weight,
            has_factor: row.has_factor,
            pack: row.pack,
            has_u: row.has_u,
            exchange: cx.caps.subgroup_size,
            eps: sum.eps,
            next_eps: row.next_eps,
        };
        let bind = Bind {
            a: sum.a.into(),
            b: sum.b.into(),
            w: sum.w.into(),
            s: sum.factor.into(),
            u: row.u.into(),
            h: sum.h.into(),
            gate: w.into(),
            up: self.glu.up.w.into(),
            packed: self.glu.packed.into(),
        };
        vec![bind.dispatch(params, Grid::PerRow { lead: sum.h.shape, per_row: w.rows.div_ceil(ROWS) })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them; blocks of results on both sides of a workgroup's, rows of one block of weights and as long as may be.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let (cols, n) = (256 * g.pick(&[1, 2, 5, 9, 10]), BLOCK * g.pick(&[1, 2, 3, 6]));
    let mut case = Case::new(1);
    let packed = row(&mut case, g, cols);
    let [gate, up] = [0, 1].map(|_| case.weight(g, ty, n, cols));
    let (gate, up) = (matmul_q8(&mut case.rec, gate, packed), matmul_q8(&mut case.rec, up, packed));
    let y = geglu(&mut case.rec, gate, up);
    let packed = pack_q8(&mut case.rec, y);
    case.expect_as(packed, Compare::Packed { k: n });
    case
}
