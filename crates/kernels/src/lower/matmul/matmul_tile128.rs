//! Product of many rows with a weight matrix, or with two, through cooperative matrices (tensor
//! cores).

use crate::caps::Caps;
use crate::graph::tensor::Weight;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::kernel::format;
use crate::kernel::split::parts;
use crate::lower::matmul::product::{Operand, Product};

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

kernel! {
    MATMUL_TILE128_PAIR: "matmul_tile128_pair",
    entry: "matmul_tile128",
    wgsl: ["matmul/matmul_tile128.wgsl", "shared/unit.wgsl", "matmul/pieces/tile128_groups.wgsl", "matmul/pieces/tile128_pair.wgsl"],
    params: PairParams { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: PairBind { x: Read, scales: Read, w: Groups, other: Second, y: Write, other_y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 24576 },
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

/// Largest number of rows. On an NVIDIA H100, Qwen3-8B reads 10,741 tokens a second of a prompt of
/// 512 with pairs and 10,486 without, but 11,341 and 12,932 of 1,024: then neither weight stays in
/// the cache until its next rows.
const PAIRED_ROWS: u32 = 512;

/// Whether these products can share a kernel: of the same rows in f16, without biases, with weights
/// of one format with units and of one shape, each in one binding, and results in whole quads.
pub(crate) fn pairs(a: &Product, b: &Product, caps: &Caps) -> bool {
    let w = a.w;
    let alike = a.x.id == b.x.id && (w.ty, w.rows) == (b.w.ty, b.w.rows) && a.bias.is_none() && b.bias.is_none();
    alike
        && a.x.shape.rows <= PAIRED_ROWS
        && matches!(a.operand, Operand::F16 { .. })
        && w.rows.is_multiple_of(4)
        && format::format(w.ty).is_some_and(|f| f.units.is_some())
        && [a.w, b.w].iter().all(|w| parts(caps, w.ty, w.rows, w.cols).len() == 1)
}

/// The dispatch of a pair.
pub(crate) fn lower_pair([a, b]: &[Product; 2]) -> Dispatch {
    let (n, rows) = (a.w.rows, a.x.shape.rows);
    let params = PairParams { k: a.w.cols, n, rows, row_base: 0, row_count: n, has_bias: 0 };
    let (x, scales) = (a.x.into(), a.scales().map_or(Arg::None, Arg::from));
    let bind = PairBind { x, scales, w: a.w.into(), other: b.w.into(), y: a.y.into(), other_y: b.y.into() };
    bind.dispatch(params, Grid::Tiles { lead: a.x.shape, tile: TILE, x: 2 * n.div_ceil(TILE) })
}
