//! Product of a few rows with a quantized weight matrix through cooperative matrices.

use super::add::add_bias;
use super::matmul::{Matmul, matmul};
use super::matmul_vec_q8;
use super::rms_norm;
use crate::device::Caps;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, PlanOptions, fixed, parts};
use crate::row::Row;
use crate::tensor::{Lead, Shape, Tensor, Weight};

kernel! {
    MATMUL_FEW_16: "matmul_few_16",
    entry: "matmul_few",
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_1.wgsl", "shared/few_parts_4.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, scales: Read, w: Tiles, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
}

kernel! {
    MATMUL_FEW_16_LONG: "matmul_few_16_long" = MATMUL_FEW_16 with
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_1.wgsl", "shared/few_parts_12.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_16_NARROW: "matmul_few_16_narrow" = MATMUL_FEW_16 with
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_1.wgsl", "shared/few_parts_8_narrow.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_32: "matmul_few_32" = MATMUL_FEW_16 with
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_2.wgsl", "shared/few_parts_4.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_32_LONG: "matmul_few_32_long" = MATMUL_FEW_16 with
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_2.wgsl", "shared/few_parts_12.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_32_NARROW: "matmul_few_32_narrow" = MATMUL_FEW_16 with
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_2.wgsl", "shared/few_parts_8_narrow.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_64: "matmul_few_64" = MATMUL_FEW_16 with
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_4.wgsl", "shared/few_parts_4.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_64_LONG: "matmul_few_64_long" = MATMUL_FEW_16 with
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_4.wgsl", "shared/few_parts_8.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_64_NARROW: "matmul_few_64_narrow" = MATMUL_FEW_16 with
    wgsl: [
        "matmul_few.wgsl", "shared/few_tiles.wgsl", "shared/few_bands_4.wgsl", "shared/few_parts_8_narrow.wgsl", "shared/unit.wgsl", "shared/grid.wgsl"
    ]
}

/// By sixteens of rows: 1, 2 and 4.
const ROWS: [[&Row; 3]; 3] = [
    [&MATMUL_FEW_16, &MATMUL_FEW_16_LONG, &MATMUL_FEW_16_NARROW],
    [&MATMUL_FEW_32, &MATMUL_FEW_32_LONG, &MATMUL_FEW_32_NARROW],
    [&MATMUL_FEW_64, &MATMUL_FEW_64_LONG, &MATMUL_FEW_64_NARROW],
];
/// Rows of activations of one cooperative matrix.
const BAND: u32 = 16;
/// Weight rows per workgroup, and of one that is narrow.
pub(super) const TILE: u32 = 32;
const NARROW_TILE: u32 = 16;
/// Fewer workgroups than these leave a large device waiting, and are made of more subgroups, if each has columns and the device so much workgroup
/// memory, or of those and of half as many rows: on an H200, 32 rows of 4096 to 12288 take 27 us, to 4096 by 8 subgroups 13 and by 12 an eighth less,
/// to 1024 by 8 and half the rows 8 instead of 11.
const FEW_WORKGROUPS: u32 = 256;
const FEWER_WORKGROUPS: u32 = 128;
const LONG_COLUMNS: u32 = 1024;

/// Whether these kernels read the weight, where matrices cooperate; for how many rows is the table's to say.
#[must_use]
pub fn serves(w: Weight) -> bool {
    matmul_vec_q8::serves(w)
}

/// Rows that a kernel multiplies where a step has `rows`.
pub(super) fn bands(rows: u32) -> u32 {
    rows.div_ceil(BAND).next_power_of_two()
}

/// The shape, in words, of the halves of `x` in slabs, and the rows of a slab. Those past the step are nobody's.
#[must_use]
pub fn slabs(x: Shape) -> (Shape, u32) {
    let rows = BAND * bands(x.rows);
    (fixed(rows, x.width() / 2), rows)
}

/// The row for so many rows of weights of `k` columns, and how many of them a workgroup takes.
fn form([usual, long, narrow]: [&'static Row; 3], row_count: u32, k: u32, caps: &Caps) -> (&'static Row, u32) {
    match row_count.div_ceil(TILE) {
        FEW_WORKGROUPS.. => (usual, TILE),
        _ if k < LONG_COLUMNS => (usual, TILE),
        FEWER_WORKGROUPS.. if long.fits(caps) => (long, TILE),
        FEWER_WORKGROUPS.. => (usual, TILE),
        _ => (narrow, NARROW_TILE),
    }
}

/// The dispatches, one for each part of the weight.
pub fn lower(op: &Matmul, scales: Tensor, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let bind = Bind { x: op.x.into(), scales: scales.into(), w: Arg::Weight(op.w, part as u32), bias: op.bias.into(), y: op.y.into() };
        let (rows, row_base, row_count, has_bias) = (op.y.shape.rows, range.start, range.len() as u32, u32::from(op.bias.is_some()));
        let params = Params { k, n, rows, row_base, row_count, has_bias };
        let (row, tile) = form(ROWS[bands(rows).ilog2() as usize], row_count, k, cx.caps);
        Dispatch { row, ..bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row: row_count.div_ceil(tile) }) }
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}

/// Activations far outside the range of f16, of ordinary ones, or all alike, which adds up what a block's scale and least lose; these never meet a
/// single row of weights, where there is a weight of so few, whose sum may be next to nothing beside what halves lose of it.
pub(super) fn activations(case: &mut Case, g: &mut Gen, cols: u32, fewest: u32) -> Tensor {
    let rows = case.input.positions.len() as u32;
    match g.pick(&[0, 1, 2]) {
        kind if kind == 0 || fewest == 1 => case.uniform(g, cols, 1e6),
        1 => case.tensor(g, cols),
        _ => case.given(Shape::new(Lead::Step, rows, cols), vec![g.unit(); (rows * cols) as usize]),
    }
}

/// Every format with units, rows at the edges of bands, columns of which subgroups have none, some, and some twice, activations far outside the range
/// of f16, all alike, or a norm's; as the planner makes it of a plain product.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.pick(&[9, 16, 17, 32, 33, 64]), g.format_with(|f| f.units.is_some()));
    let few = [1, 15, 16, 17, 31, 33, 97];
    // Of each form as many: of few columns, of many columns by few rows, and by more.
    let (n, cols) = match g.pick(&[0, 1, 2]) {
        0 => (g.pick(&few), (g.cols(ty) + g.pick(&[0, LONG_COLUMNS / 2])).min(LONG_COLUMNS - ty.block_size() as u32)),
        1 => (g.pick(&few), g.cols(ty) + LONG_COLUMNS),
        _ => (TILE * FEWER_WORKGROUPS + 1, LONG_COLUMNS),
    };
    let mut case = Case::new(rows);
    case.options = PlanOptions { fast: true, ..case.options };
    case.halves = true;
    let w = case.weight(g, ty, n, cols);
    let x = activations(&mut case, g, cols, n);
    let x = if g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul(&mut case.rec, w, x);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
