//! Product of many rows with a weight matrix, or with two, through cooperative matrices (tensor
//! cores).

use super::ladder::Part;
use super::product::{Operand, Product};
use crate::caps::Caps;
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

/// Whether workgroups take 64 rows of weights: where these take less time in rounds. A round is
/// twice the table's `workgroups` of wide ones, or three times as many narrow ones, which take 7/8
/// of the time.
///
/// Measured on an NVIDIA H200, Q4_K, TFLOP/s wide and narrow: 128 rows of 4096 to 24576 167 and
/// 201, 512 rows 228 and 208; 512 rows of 12288 to 4096 145 and 180, 2048 rows of 4096 to 4096 229
/// and 191.
fn is_narrow(rows: u32, n: u32, caps: &Caps) -> bool {
    let [wide, narrow] = eighths(rows, n, caps);
    narrow < wide
}

/// The time of `rows` rows with a weight of `n` rows, in eighths of a round of wide workgroups, for
/// wide workgroups and for narrow ones.
fn eighths(rows: u32, n: u32, caps: &Caps) -> [u32; 2] {
    let (down, at_once) = (rows.div_ceil(TILE), caps.table.workgroups);
    let wide = (down * n.div_ceil(TILE)).div_ceil(2 * at_once);
    let narrow = (down * n.div_ceil(NARROW)).div_ceil(3 * at_once);
    [8 * wide, 7 * narrow]
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

/// Whether both weights take less time in one dispatch. Its rounds take 5/4 of the time, because it
/// reads more weights before it reads the first ones again for the next rows. On an NVIDIA H100,
/// 512 rows of 3584 to 2 x 18944 take 708 us in one dispatch of 5 rounds, and even 640 rows take
/// only 671 us in two dispatches of 3 rounds. Qwen2.5-1.5B F16 reads prompts of 512 at 51,401
/// tokens a second in 3 rounds of a pair and at 48,156 in twice 2 rounds.
fn gains(rows: u32, n: u32, caps: &Caps) -> bool {
    let time = |n| eighths(rows, n, caps).into_iter().min().unwrap_or(0);
    5 * time(2 * n) <= 4 * 2 * time(n)
}

/// Largest number of rows. On an NVIDIA H100, Qwen3-8B reads 11,341 tokens a second of a prompt of
/// 1,024 with pairs and 12,932 without: then neither weight stays in the cache until its next rows.
const PAIRED_ROWS: u32 = 512;

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
