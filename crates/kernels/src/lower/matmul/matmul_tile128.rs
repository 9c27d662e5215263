//! Product of many rows with a weight matrix through cooperative matrices (tensor cores).

use crate::graph::tensor::Weight;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::kernel::format;
use crate::kernel::split::parts;
use crate::lower::matmul::product::Product;

kernel! {
    MATMUL_TILE128: "matmul_tile128",
    wgsl: ["matmul/matmul_tile128.wgsl", "matmul/pieces/tile128_quads.wgsl", "matmul/pieces/tile128_end.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 24576 },
}

kernel! {
    MATMUL_TILE128_GROUPS: "matmul_tile128_groups",
    entry: "matmul_tile128",
    wgsl: ["matmul/matmul_tile128.wgsl", "shared/unit.wgsl", "matmul/pieces/tile128_groups.wgsl", "matmul/pieces/tile128_ahead.wgsl", end],
    params: GroupsParams { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: GroupsBind { x: Read, scales: Read, w: Groups, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 24576 },
    variants: {
        // Results in whole quads, and others.
        QUADS: "matmul_tile128_groups" { end: choose ["matmul/pieces/tile128_end_quads.wgsl"] },
        TAIL: "matmul_tile128_groups_tail" { end: choose ["matmul/pieces/tile128_end.wgsl"] },
    },
}

/// Side length of the square of results that a workgroup computes.
pub(crate) const TILE: u32 = 128;

/// Columns that are staged at once. A row must be a multiple of it.
pub const DEPTH: u32 = 32;

/// Whether rows of a weight can be staged.
#[must_use]
pub fn serves(w: Weight) -> bool {
    w.cols.is_multiple_of(DEPTH)
}

/// The dispatches, one for each part of the weight.
pub fn lower(op: &Product, cx: &Lower<'_>) -> Vec<Dispatch> {
    let scales = op.scales().map_or(Arg::None, Arg::from);
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let in_groups = format::format(ty).is_some_and(|f| f.units.is_some());
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let (x, scales, w, bias, y) = (op.x.into(), scales, Arg::Weight(op.w, part as u32), op.bias.into(), op.y.into());
        let (rows, row_base, row_count, has_bias) = (op.x.shape.rows, range.start, range.len() as u32, u32::from(op.bias.is_some()));
        let in_quads = [n, row_base, row_count].iter().all(|rows| rows.is_multiple_of(4));
        let grid = Grid::Tiles { lead: op.x.shape, tile: TILE, x: row_count.div_ceil(TILE) };
        match in_groups {
            true => {
                let params = GroupsParams { k, n, rows, row_base, row_count, has_bias };
                GroupsBind { x, scales, w, bias, y }.dispatch(if in_quads { &QUADS } else { &TAIL }, params, grid)
            }
            false => Bind { x, scales, w, bias, y }.dispatch(Params { k, n, rows, row_base, row_count, has_bias }, grid),
        }
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}
