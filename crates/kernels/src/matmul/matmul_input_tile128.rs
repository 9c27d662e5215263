//! Derivative of a product with a weight matrix by its activations, of many rows, through
//! cooperative matrices (tensor cores). The planner makes it.

use super::matmul_input::MatmulInput;
use super::matmul_tile128::{DEPTH, TILE};
use super::problem::TILE128_ROWS;
use crate::caps::Caps;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::tensor::{Counts, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::kernel::format;
use crate::kernel::split::parts;
use crate::norm::pack_f16::unpacked;

kernel! {
    MATMUL_INPUT_TILE128: "matmul_input_tile128",
    wgsl: ["matmul/matmul_input_tile128.wgsl", "matmul/pieces/tile128_sums.wgsl", "matmul/pieces/tile128_quads.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, onto: u32 },
    bindings: Bind { dy: Read, scales: Read, w: Weight(Unitless), dx: Write },
    cpu: cpu_ref::matmul_input,
    // As matmul_tile128: f32 before a weight is rounded to f16 may decide it either way.
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 24576 },
}

kernel! {
    MATMUL_INPUT_TILE128_GROUPS: "matmul_input_tile128_groups",
    entry: "matmul_input_tile128",
    wgsl: [
        "matmul/matmul_input_tile128.wgsl", "matmul/pieces/tile128_sums.wgsl", "shared/unit.wgsl", "matmul/pieces/tile128_groups.wgsl",
        "matmul/pieces/tile128_ahead.wgsl",
    ],
    params: GroupsParams { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, onto: u32 },
    bindings: GroupsBind { dy: Read, scales: Read, w: Weight(Groups), dx: Write },
    cpu: cpu_ref::matmul_input,
    // As matmul_tile128: f32 before a weight is rounded to f16 may decide it either way.
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 25600 },
}

/// dx = dy w, of rows in f16.
#[derive(Clone, Debug)]
pub struct MatmulInputTile128 {
    pub w: Weight,
    /// As [`pack_f16`](crate::norm::pack_f16) packs rows.
    pub dy: Tensor,
    pub scales: Tensor,
    pub dx: Tensor,
}

/// Elements that are read at once: the parts of a weight begin at a multiple.
pub(crate) const QUAD: u32 = 4;

/// Whether the kernels take the derivative on this device.
#[must_use]
pub fn serves(op: &MatmulInput, caps: &Caps) -> bool {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let in_quads = || parts(caps, ty, n, k).iter().all(|part| part.start.is_multiple_of(QUAD));
    let rows = op.dy.shape.rows >= TILE128_ROWS;
    !op.exact && caps.cooperative && rows && k.is_multiple_of(DEPTH) && n.is_multiple_of(QUAD) && in_quads()
}

impl Operation for MatmulInputTile128 {
    fn io(&self) -> Io {
        Io { reads: vec![self.dy, self.scales], writes: vec![self.dx] }
    }

    fn work(&self, counts: Counts) -> Work {
        crate::matmul::product::work(self.w, self.dx, counts)
    }
}

impl Lowering for MatmulInputTile128 {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Weight { ty, rows: n, cols: k, .. } = self.w;
        let in_groups = format::format(ty).is_some_and(|f| f.units.is_some());
        // The parts of a weight add up, in order.
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let (dy, scales, w, dx) =
                (self.dy.into(), self.scales.into(), Arg::Weight(self.w, part as u32), self.dx.into());
            let (rows, row_base, row_count, onto) =
                (self.dy.shape.rows, range.start, range.len() as u32, u32::from(part > 0));
            let grid = Grid::Tiles { lead: self.dy.shape, tile: TILE, x: k.div_ceil(TILE) };
            match in_groups {
                true => GroupsBind { dy, scales, w, dx }
                    .dispatch(GroupsParams { k, n, rows, row_base, row_count, onto }, grid),
                false => Bind { dy, scales, w, dx }.dispatch(Params { k, n, rows, row_base, row_count, onto }, grid),
            }
        };
        parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
    }
}

impl Reference for MatmulInputTile128 {
    /// The derivative with the values that the rounded rows represent, and weights in f16.
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        let dy = unpacked(host.f32(self.scales), host.u32(self.dy), self.w.rows as usize, 0);
        host.matmul_input_f16(self.w, &dy, &mut dx);
        host.put(self.dx, dx);
    }
}
