//! Both products of few rows with their experts' weights, the gated activation and its packing in
//! one kernel, with the choice of the experts, after it, or with slots that are grouped
//! (`matmul_rows8_experts_glu`). The planner makes it; it is never recorded.

use super::matmul_rows8_experts_glu;
use super::matmul_vec_q8_experts::MatmulVecQ8Experts;
use super::route::Route;
use crate::caps::Caps;
use crate::caps::table::measured::EXPERTS_LONG_COLUMNS;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::norm::pack_q8::BLOCK;

kernel! {
    MATMUL_VEC_Q8_EXPERTS_GLU: "matmul_vec_q8_experts_glu",
    wgsl: [
        "experts/matmul_vec_q8_experts_glu.wgsl", head, "experts/pieces/chosen_before.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", activation,
        "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, n: u32, gate_stride: u32, gate_first: u32, up_stride: u32, up_first: u32, chosen: u32, rows: u32, exchange: u32,
        count: u32, normalize: u32, has_scale: u32
    },
    bindings: Bind { x: Read, gate: Weight(Units), up: Weight(Units), experts: Read, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 7296 },
    variants: {
        SILU: "matmul_vec_q8_experts_glu_silu" { head: vary { ROW_LANES: 16 }, activation: choose ["shared/silu4.wgsl"] },
        GELU: "matmul_vec_q8_experts_glu_gelu" {
            head: vary { ROW_LANES: 16 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        // These variants serve rows that are long enough for more lanes.
        SILU_LONG: "matmul_vec_q8_experts_glu_silu_long" needs { threads: 512, workgroup_bytes: 14464 } {
            head: vary { ROW_LANES: 32 },
            activation: choose ["shared/silu4.wgsl"],
        },
        GELU_LONG: "matmul_vec_q8_experts_glu_gelu_long" needs { threads: 512, workgroup_bytes: 14464 } {
            head: vary { ROW_LANES: 32 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
    },
}

kernel! {
    ROUTE_MATMUL_VEC_Q8_EXPERTS_GLU: "matmul_vec_q8_experts_glu_route",
    entry: "matmul_vec_q8_experts_glu",
    wgsl: [
        "experts/matmul_vec_q8_experts_glu.wgsl", head, "experts/pieces/chosen_here.wgsl", "experts/pieces/choose.wgsl", "shared/unit.wgsl",
        "shared/dot_q8.wgsl", activation, "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl",
        "shared/grid.wgsl", "shared/order.wgsl"
    ],
    params: RoutedParams {
        k: u32, n: u32, gate_stride: u32, gate_first: u32, up_stride: u32, up_first: u32, chosen: u32, rows: u32, exchange: u32,
        count: u32, normalize: u32, has_scale: u32
    },
    bindings: RoutedBind { x: Read, gate: Weight(Units), up: Weight(Units), logits: Read, scale: Read, experts: Write, weights: Write, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 11392 },
    variants: {
        ROUTE_SILU: "matmul_vec_q8_experts_glu_route_silu" { head: vary { ROW_LANES: 16 }, activation: choose ["shared/silu4.wgsl"] },
        ROUTE_GELU: "matmul_vec_q8_experts_glu_route_gelu" {
            head: vary { ROW_LANES: 16 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        // These variants serve rows that are long enough for more lanes.
        ROUTE_SILU_LONG: "matmul_vec_q8_experts_glu_route_silu_long" needs { threads: 512, workgroup_bytes: 20608 } {
            head: vary { ROW_LANES: 32 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROUTE_GELU_LONG: "matmul_vec_q8_experts_glu_route_gelu_long" needs { threads: 512, workgroup_bytes: 20608 } {
            head: vary { ROW_LANES: 32 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
    },
}

/// The variants of the first kernel: for silu and for gelu, each with more lanes and with fewer.
pub(crate) static GATED: [[&Variant; 2]; 2] = [[&SILU_LONG, &SILU], [&GELU_LONG, &GELU]];
/// The variants of the second kernel: for silu and for gelu, each with more lanes and with fewer.
pub(crate) static ROUTED: [[&Variant; 2]; 2] = [[&ROUTE_SILU_LONG, &ROUTE_SILU], [&ROUTE_GELU_LONG, &ROUTE_GELU]];

/// The variant for rows of this length on this device, if it can run one.
pub(crate) fn variant(of: &[[&'static Variant; 2]; 2], gelu: bool, cols: u32, caps: &Caps) -> Option<&'static Variant> {
    let [long, usual] = of[usize::from(gelu)];
    [long, usual]
        .into_iter()
        .find(|variant| variant.fits(caps) && (cols >= EXPERTS_LONG_COLUMNS || std::ptr::eq(*variant, usual)))
}

/// Largest number of experts among which the kernel chooses: `MOST` in `chosen_here.wgsl`.
pub const MOST_EXPERTS: u32 = 256;

/// packed = 8 bits of activation(gate x) * (up x) for the experts of every row. Each row has the
/// results of all its experts.
#[derive(Clone, Debug)]
pub struct MatmulExpertsGlu {
    pub gate: MatmulVecQ8Experts,
    pub up: MatmulVecQ8Experts,
    /// gelu (tanh form) if true, otherwise silu.
    pub gelu: bool,
    pub packed: Tensor,
    /// The choice of the experts, if no kernel before this one makes it.
    pub route: Option<Route>,
}

impl Operation for MatmulExpertsGlu {
    fn io(&self) -> Io {
        let (packed, experts) = (self.gate.packed, self.gate.of.routes.experts);
        let groups = self.gate.of.routes.groups.iter().flat_map(|groups| [groups.slots, groups.tiles]);
        match &self.route {
            None => Io { reads: [packed, experts].into_iter().chain(groups).collect(), writes: vec![self.packed] },
            Some(Route { logits, weights, .. }) => {
                Io { reads: vec![packed, *logits], writes: vec![experts, *weights, self.packed] }
            }
        }
    }

    fn work(&self, counts: Counts) -> Work {
        self.gate.work(counts).plus(self.up.work(counts))
    }
}

impl Lowering for MatmulExpertsGlu {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let (of, other) = (&self.gate.of, &self.up.of);
        if let Some(groups) = &of.routes.groups {
            return vec![matmul_rows8_experts_glu::lower(self, groups, cx)];
        }
        let (k, n, slots) = (of.w.cols, of.y.shape.dim, of.routes.experts.shape);
        let (gate_stride, gate_first, up_stride, up_first) = (of.stride(), of.first, other.stride(), other.first);
        let (chosen, rows, exchange) = (slots.dim, slots.rows, cx.caps.subgroup_size);
        let (x, gate, up, experts) = (self.gate.packed.into(), of.w.into(), other.w.into(), of.routes.experts.into());
        let (packed, products) = (self.packed.into(), chosen * (n / BLOCK));
        let served =
            |of| variant(of, self.gelu, k, cx.caps).expect("the planner merges for devices that run the kernel");
        vec![match &self.route {
            None => {
                let (count, normalize, has_scale) = (of.routes.count, 0, 0);
                let params = Params {
                    k,
                    n,
                    gate_stride,
                    gate_first,
                    up_stride,
                    up_first,
                    chosen,
                    rows,
                    exchange,
                    count,
                    normalize,
                    has_scale,
                };
                let grid = Grid::PerRow { lead: slots, per_row: products };
                Bind { x, gate, up, experts, packed }.dispatch(served(&GATED), params, grid)
            }
            Some(Route { logits, normalize, scale, weights, .. }) => {
                let (count, normalize, has_scale) =
                    (of.routes.count, u32::from(*normalize), u32::from(scale.is_some()));
                let params = RoutedParams {
                    k,
                    n,
                    gate_stride,
                    gate_first,
                    up_stride,
                    up_first,
                    chosen,
                    rows,
                    exchange,
                    count,
                    normalize,
                    has_scale,
                };
                let (logits, scale, weights) = ((*logits).into(), (*scale).into(), (*weights).into());
                let bind = RoutedBind { x, gate, up, logits, scale, experts, weights, packed };
                bind.dispatch(served(&ROUTED), params, Grid::PerRow { lead: slots, per_row: products + 1 })
            }
        }]
    }
}
