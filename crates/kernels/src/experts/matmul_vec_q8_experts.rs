//! Products of few rows of 8-bit activations with their experts' weights: one slot at a time, or
//! grouped by expert (`matmul_rows8_experts`). The planner makes it.

use super::matmul_experts::MatmulExperts;
use super::matmul_rows8_experts::{self, slots_per_expert};
use crate::caps::Caps;
use crate::caps::table::measured::EXPERTS_Q8_SLOTS;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::kernel::split::parts;
use crate::matmul::matmul_vec_q8;
use crate::matmul::problem::Rounds;

kernel! {
    MATMUL_VEC_Q8_EXPERTS: "matmul_vec_q8_experts",
    wgsl: [
        "experts/matmul_vec_q8_experts.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl",
        "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, n: u32, stride: u32, first: u32, per: u32, heads: u32, slots: u32, row_base: u32, row_count: u32, exchange: u32
    },
    bindings: Bind { x: Read, w: Weight(Units), experts: Read, y: Write },
    cpu: cpu_ref::matmul_vec_experts,
    nmse: 1e-10,
    needs: { threads: 32, workgroup_bytes: 512 },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 2;

/// The product of experts with packed rows in place of `of.x`.
#[derive(Clone, Debug)]
pub struct MatmulVecQ8Experts {
    pub of: MatmulExperts,
    /// All rows of `of.x` of a row of the step as one row of
    /// [`pack_q8`](crate::norm::pack_q8).
    pub packed: Tensor,
}

/// Whether a product of experts takes packed rows in a plan that rounds like this, for this number
/// of sequences: few rows, and a weight that is multiplied in 8 bits. On devices with cooperative
/// matrices a step of at most one row for each sequence takes them, too, where experts have few
/// slots: it rounds as the decode of one sequence. Prompts round to f16 there.
#[must_use]
pub fn serves(of: &MatmulExperts, rounds: Rounds, sequences: u32, caps: &Caps) -> bool {
    let rows = of.x.shape.rows;
    let decode = caps.cooperative && rows <= sequences && slots_per_expert(&of.routes) <= EXPERTS_Q8_SLOTS;
    let few = rows <= caps.table.q8_rows || decode && of.routes.groups.is_some();
    rounds == Rounds::Freely && few && matmul_vec_q8::serves(of.w)
}

impl Operation for MatmulVecQ8Experts {
    fn io(&self) -> Io {
        let groups = self.of.routes.groups.iter().flat_map(|groups| [groups.slots, groups.tiles]);
        Io { reads: [self.packed, self.of.routes.experts].into_iter().chain(groups).collect(), writes: vec![self.of.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.of.work(counts)
    }
}

impl Lowering for MatmulVecQ8Experts {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let MatmulExperts { w, first, x, routes, y } = self.of;
        if let Some(groups) = &routes.groups {
            return matmul_rows8_experts::lower(self, groups, cx);
        }
        let (n, k, experts) = (y.shape.dim, w.cols, routes.experts);
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let bind =
                Bind { x: self.packed.into(), w: Arg::Weight(w, part as u32), experts: experts.into(), y: y.into() };
            let params = Params {
                k,
                n,
                stride: self.of.stride(),
                first,
                per: self.of.per(),
                heads: x.shape.heads,
                slots: experts.shape.elements() as u32,
                row_base: range.start,
                row_count: range.len() as u32,
                exchange: cx.caps.subgroup_size,
            };
            bind.dispatch(
                params,
                Grid::PerRow { lead: experts.shape, per_row: experts.shape.dim * n.div_ceil(WEIGHT_ROWS) },
            )
        };
        parts(cx.caps, w.ty, w.rows, k).into_iter().enumerate().map(one).collect()
    }
}

impl Reference for MatmulVecQ8Experts {
    /// The product with the values that the packed rows represent.
    fn reference(&self, host: &mut Host<'_>) {
        let words = host.u32(self.packed);
        let mut x = vec![0.0; words.len() / 3 * 8];
        cpu_ref::unpack_q8(words, self.of.x.shape.width() as usize, &mut x);
        in_one_turn(self.of.compute(host, &x, false));
    }
}
