//! A product of one row with the gated activation and packing that make the row, in one kernel. Made by the planner, never recorded.

use super::glu_pack_q8::GluPackQ8;
use super::matmul::Matmul;
use super::matmul_vec_group::joins;
use super::matmul_vec_q8::matmul_q8;
use super::{Io, Op, Operation, Work, geglu_columns, pack_q8};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::tensor::Counts;

kernel! {
    GLU_MATMUL_VEC: "glu_matmul_vec",
    entry: "glu_matmul_vec",
    wgsl: [
        "glu_matmul_vec.wgsl", "shared/acts_own.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/unit.wgsl",
        "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, start: u32, lanes: u32, exchange: u32 },
    bindings: Bind { gate: Read, up: Read, w: Units, y: Write },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-4,
}

/// Columns up to which it is faster to make a row in every workgroup than once.
const MOST_COLS: u32 = 1024;
const WG: u32 = 128;
/// Elements of a row of weights that a thread takes: a unit, so that no thread has more than one.
const PER_LANE: u32 = 32;

/// y = w x, with x the packed gated activation, which no other operation reads.
#[derive(Clone, Debug)]
pub struct GluMatmulVec {
    pub glu: GluPackQ8,
    pub product: Matmul,
}

/// A product that reads a packed gated activation.
pub(crate) fn inline(maker: &Op, reader: &Op, caps: &Caps) -> Option<Op> {
    let (Op::GluPackQ8(glu), Op::Matmul(product)) = (maker, reader) else { return None };
    let short = product.x.shape.rows == 1 && product.w.cols <= MOST_COLS && product.bias.is_none();
    let fits = glu.gelu && short && joins(product, caps) && GLU_MATMUL_VEC.fits(caps);
    fits.then(|| GluMatmulVec { glu: glu.clone(), product: product.clone() }.into())
}

impl Operation for GluMatmulVec {
    fn io(&self) -> Io {
        Io { reads: vec![self.glu.gate, self.glu.up], writes: vec![self.product.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.product.work(counts)
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let w = self.product.w;
        let lanes = (w.cols / PER_LANE).clamp(2, 32).next_power_of_two();
        let bind = Bind { gate: self.glu.gate.into(), up: self.glu.up.into(), w: w.into(), y: self.product.y.into() };
        let params = Params { k: w.cols, n: w.rows, start: self.glu.start, lanes, exchange: cx.caps.subgroup_size };
        vec![bind.dispatch(params, Grid::PerRow { lead: self.glu.gate.shape, per_row: w.rows.div_ceil(2 * WG / lanes) })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, of some columns of a wider factor; rows of few threads and of as many as there may be, odd and even
/// numbers of rows of weights on both sides of a workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let cols = ty.block_size() as u32 * if ty.block_size() == 32 { g.pick(&[1, 2, 3, 8, 11, 32]) } else { g.pick(&[1, 2, 3, 4]) };
    let n = g.pick(&[31, 32, 64, 97, 130]);
    let mut case = Case::new(1);
    let (before, behind) = (g.pick(&[0, 4, 12]), g.pick(&[0, 8]));
    let (gate, up) = (case.tensor(g, cols), case.tensor(g, before + cols + behind));
    let w = case.weight(g, ty, n, cols);
    let y = geglu_columns(&mut case.rec, gate, up, before);
    let packed = pack_q8(&mut case.rec, y);
    let y = matmul_q8(&mut case.rec, w, packed);
    case.expect(y);
    case
}
