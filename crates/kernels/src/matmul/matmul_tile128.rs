//! Product of many rows with a weight matrix, or with two, through cooperative matrices (tensor
//! cores).

use super::problem::Part;
use super::product::{Operand, Product};
use crate::caps::Caps;
use crate::caps::table::measured::{PAIR_TIME, PAIRED_ROWS, TILE128_AT_ONCE, TILE128_TIME};
use crate::graph::tensor::Weight;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch, Grid};
use crate::kernel::format;
use crate::kernel::split::parts;

kernel! {
    MATMUL_TILE128: "matmul_tile128",
    wgsl: [
        "matmul/matmul_tile128.wgsl", groups, "matmul/pieces/tile128_slots.wgsl", "matmul/pieces/tile128_loop.wgsl",
        "matmul/pieces/tile128_quads.wgsl", "matmul/pieces/tile128_end.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, slab: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight(Blocks), bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 13312 },
    variants: {
        // GROUPS: groups of 16 rows of weights. More would not leave registers for dequantizing.
        ANY: "matmul_tile128" { groups: vary { GROUPS: 4 } },
    },
}

kernel! {
    MATMUL_TILE128_HALVES: "matmul_tile128_halves",
    entry: "matmul_tile128",
    wgsl: [
        "matmul/matmul_tile128.wgsl", groups, "matmul/pieces/tile128_slots.wgsl", "matmul/pieces/tile128_loop.wgsl",
        "matmul/pieces/tile128_halves.wgsl", "matmul/pieces/tile128_halves_ahead.wgsl", "matmul/pieces/tile128_end.wgsl"
    ],
    params: HalvesParams { k: u32, n: u32, rows: u32, slab: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: HalvesBind { x: Read, scales: Read, w: Weight(Halves), bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 22528 },
    variants: {
        HALVES: "matmul_tile128_halves" { groups: vary { GROUPS: 8 } },
        HALVES_NARROW: "matmul_tile128_halves_narrow" needs { threads: 128, workgroup_bytes: 13312 } { groups: vary { GROUPS: 4 } },
    },
}

kernel! {
    MATMUL_TILE128_GROUPS: "matmul_tile128_groups",
    entry: "matmul_tile128",
    wgsl: [
        "matmul/matmul_tile128.wgsl", groups, "matmul/pieces/tile128_slots.wgsl", "matmul/pieces/tile128_loop.wgsl", "shared/unit.wgsl",
        "matmul/pieces/tile128_groups.wgsl", "matmul/pieces/tile128_ahead.wgsl", end
    ],
    params: GroupsParams { k: u32, n: u32, rows: u32, slab: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: GroupsBind { x: Read, scales: Read, w: Weight(Groups), bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 23552 },
    variants: {
        // Results in whole quads, and others.
        QUADS: "matmul_tile128_groups" { groups: vary { GROUPS: 8 }, end: choose ["matmul/pieces/tile128_end_quads.wgsl"] },
        TAIL: "matmul_tile128_groups_tail" { groups: vary { GROUPS: 8 }, end: choose ["matmul/pieces/tile128_end.wgsl"] },
        QUADS_NARROW: "matmul_tile128_groups_narrow" needs { threads: 128, workgroup_bytes: 14336 } {
            groups: vary { GROUPS: 4 }, end: choose ["matmul/pieces/tile128_end_quads.wgsl"],
        },
        TAIL_NARROW: "matmul_tile128_groups_narrow_tail" needs { threads: 128, workgroup_bytes: 14336 } {
            groups: vary { GROUPS: 4 }, end: choose ["matmul/pieces/tile128_end.wgsl"],
        },
    },
}

kernel! {
    MATMUL_TILE128_PAIR: "matmul_tile128_pair",
    entry: "matmul_tile128",
    wgsl: [
        "matmul/matmul_tile128.wgsl", groups, "matmul/pieces/tile128_slots.wgsl", "matmul/pieces/tile128_loop.wgsl", "shared/unit.wgsl",
        "matmul/pieces/tile128_groups.wgsl", "matmul/pieces/tile128_pair_ahead.wgsl", "matmul/pieces/tile128_pair.wgsl"
    ],
    params: PairParams { k: u32, n: u32, rows: u32, slab: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: PairBind { x: Read, scales: Read, w: Weight(Groups), other: Weight(Second), y: Write, other_y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 23552 },
    variants: {
        PAIR: "matmul_tile128_pair" { groups: vary { GROUPS: 8 } },
        PAIR_NARROW: "matmul_tile128_pair_narrow" needs { threads: 128, workgroup_bytes: 14336 } { groups: vary { GROUPS: 4 } },
    },
}

kernel! {
    MATMUL_TILE128_HALVES_PAIR: "matmul_tile128_halves_pair",
    entry: "matmul_tile128",
    wgsl: [
        "matmul/matmul_tile128.wgsl", groups, "matmul/pieces/tile128_slots.wgsl", "matmul/pieces/tile128_loop.wgsl",
        "matmul/pieces/tile128_halves.wgsl", "matmul/pieces/tile128_halves_pair.wgsl", "matmul/pieces/tile128_pair.wgsl"
    ],
    params: HalvesPairParams { k: u32, n: u32, rows: u32, slab: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: HalvesPairBind { x: Read, scales: Read, w: Weight(Halves), other: Weight(Second), y: Write, other_y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 22528 },
    variants: {
        HALVES_PAIR: "matmul_tile128_halves_pair" { groups: vary { GROUPS: 8 } },
        HALVES_PAIR_NARROW: "matmul_tile128_halves_pair_narrow" needs { threads: 128, workgroup_bytes: 13312 } { groups: vary { GROUPS: 4 } },
    },
}

/// Rows of activations of a workgroup, and rows of weights of a wide one; a narrow one has
/// [`NARROW`].
pub(crate) const TILE: u32 = 128;
pub(crate) const NARROW: u32 = 64;

/// Whether workgroups take 64 rows of weights: where these take less time in rounds.
fn is_narrow(rows: u32, n: u32, caps: &Caps) -> bool {
    let [wide, narrow] = eighths(rows, n, caps);
    narrow < wide
}

/// The time of `rows` rows with a weight of `n` rows, in eighths of a round of wide workgroups, for
/// wide workgroups and for narrow ones. A round is [`TILE128_AT_ONCE`] times the table's
/// `workgroups`, and takes [`TILE128_TIME`].
fn eighths(rows: u32, n: u32, caps: &Caps) -> [u32; 2] {
    let (down, at_once) = (rows.div_ceil(TILE), caps.table.workgroups);
    let time =
        |form: usize, tile| TILE128_TIME[form] * (down * n.div_ceil(tile)).div_ceil(TILE128_AT_ONCE[form] * at_once);
    [time(0, TILE), time(1, NARROW)]
}

/// Columns that are staged at once. A row must be a multiple of it.
pub const DEPTH: u32 = 32;

/// Whether rows of a weight can be staged.
#[must_use]
pub fn serves(w: Weight) -> bool {
    w.cols.is_multiple_of(DEPTH)
}

/// How a kernel stages a weight.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Units,
    /// Of 16 bits.
    Halves,
    Any,
}

fn kind(w: Weight) -> Kind {
    match format::format(w.ty) {
        Some(format) if format.units.is_some() => Kind::Units,
        Some(format) if format.is_halves() => Kind::Halves,
        _ => Kind::Any,
    }
}

/// Whether a workgroup takes 64 rows of weights for a part of a product.
fn narrow(part: &Part<'_>) -> bool {
    kind(part.product.w) == Kind::Any || is_narrow(part.to.shape.rows, part.rows, part.caps)
}

/// The variant for a part of a product.
pub fn form(part: &Part<'_>) -> &'static Variant {
    let in_quads = [part.product.w.rows, part.first, part.rows].iter().all(|rows| rows.is_multiple_of(4));
    match (kind(part.product.w), in_quads, narrow(part)) {
        (Kind::Units, true, false) => &QUADS,
        (Kind::Units, true, true) => &QUADS_NARROW,
        (Kind::Units, false, false) => &TAIL,
        (Kind::Units, false, true) => &TAIL_NARROW,
        (Kind::Halves, _, false) => &HALVES,
        (Kind::Halves, _, true) => &HALVES_NARROW,
        (Kind::Any, ..) => &ANY,
    }
}

/// The dispatch of a part of a product.
pub fn lower(part: &Part<'_>, variant: &'static Variant) -> Dispatch {
    let op = part.product;
    let scales = op.scales().map_or(Arg::None, Arg::from);
    let (x, w, bias, y) = (op.x.into(), part.w(), part.added, part.to.into());
    let Weight { rows: n, cols: k, .. } = op.w;
    let (rows, slab) = (part.to.shape.rows, op.x.shape.rows);
    let (row_base, row_count, has_bias) = (part.first, part.rows, part.has_bias());
    let columns = row_count.div_ceil(if narrow(part) { NARROW } else { TILE });
    let grid = Grid::Tiles { lead: part.to.shape, tile: TILE, x: columns };
    match kind(op.w) {
        Kind::Units => {
            let params = GroupsParams { k, n, rows, slab, row_base, row_count, has_bias };
            GroupsBind { x, scales, w, bias, y }.dispatch(variant, params, grid)
        }
        Kind::Halves => {
            let params = HalvesParams { k, n, rows, slab, row_base, row_count, has_bias };
            HalvesBind { x, scales, w, bias, y }.dispatch(variant, params, grid)
        }
        Kind::Any => {
            let params = Params { k, n, rows, slab, row_base, row_count, has_bias };
            Bind { x, scales, w, bias, y }.dispatch(variant, params, grid)
        }
    }
}

/// Whether both weights take less time in one dispatch, whose rounds take [`PAIR_TIME`].
fn gains(rows: u32, n: u32, caps: &Caps) -> bool {
    let time = |n| eighths(rows, n, caps).into_iter().min().unwrap_or(0);
    let [pair, alone] = PAIR_TIME;
    pair * time(2 * n) <= alone * 2 * time(n)
}

/// Whether these products can share a kernel: of the same rows in f16, without biases, with weights
/// of one format with units or of 16 bits and of one shape, each in one binding, and results in
/// whole quads.
pub(crate) fn pairs(a: &Product, b: &Product, caps: &Caps) -> bool {
    let w = a.w;
    let alike = a.x.id == b.x.id && (w.ty, w.rows) == (b.w.ty, b.w.rows) && a.bias.is_none() && b.bias.is_none();
    alike
        && a.y.shape.rows <= PAIRED_ROWS
        && gains(a.y.shape.rows, w.rows, caps)
        && matches!(a.operand, Operand::F16 { .. })
        && w.rows.is_multiple_of(4)
        && kind(w) != Kind::Any
        && [a.w, b.w].iter().all(|w| parts(caps, w.ty, w.rows, w.cols).len() == 1)
}

/// The dispatch of a pair.
pub(crate) fn lower_pair([a, b]: &[Product; 2], caps: &Caps) -> Dispatch {
    let (n, rows, slab) = (a.w.rows, a.y.shape.rows, a.x.shape.rows);
    let (k, row_base, row_count, has_bias) = (a.w.cols, 0, n, 0);
    let (x, scales) = (a.x.into(), a.scales().map_or(Arg::None, Arg::from));
    let (w, other, y, other_y) = (a.w.into(), b.w.into(), a.y.into(), b.y.into());
    let narrow = is_narrow(rows, 2 * n, caps);
    let grid = Grid::Tiles { lead: a.y.shape, tile: TILE, x: 2 * n.div_ceil(if narrow { NARROW } else { TILE }) };
    if kind(a.w) == Kind::Halves {
        let params = HalvesPairParams { k, n, rows, slab, row_base, row_count, has_bias };
        let variant = if narrow { &HALVES_PAIR_NARROW } else { &HALVES_PAIR };
        return HalvesPairBind { x, scales, w, other, y, other_y }.dispatch(variant, params, grid);
    }
    let params = PairParams { k, n, rows, slab, row_base, row_count, has_bias };
    PairBind { x, scales, w, other, y, other_y }.dispatch(if narrow { &PAIR_NARROW } else { &PAIR }, params, grid)
}
