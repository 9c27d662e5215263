// The parts of matmul_tile64.wgsl's tiles of 16 BANDS x 16 GROUPS results that do not depend on the
// weights' format (quant/units/tile64.wgsl has the parts that do).
// Needs: PARTS, GROUPS, BANDS, params.rows, x, rows_of, tile64_store, scales. Gives: Slabs, Sums,
// WG, TILE, AHEAD, UNITS, PITCH, BAND, ws, ys, slabs_at, band_of, add, multiply, finish.
alias OfX = coop_mat16x16<f16, A>;
alias OfW = coop_mat16x16<f16, B>;
alias OfY = coop_mat16x16<f32, C>;
// Fragments of x (16 columns of each of four units) and sums, one member per band. Members past
// BANDS are unused.
struct Slab { a: OfX, b: OfX, c: OfX, d: OfX }
struct Slabs { t0: Slab, t1: Slab, t2: Slab, t3: Slab, t4: Slab, t5: Slab }
struct Sums { t0: OfY, t1: OfY, t2: OfY, t3: OfY, t4: OfY, t5: OfY }
const WG = 32u * PARTS;
const TILE = 16u;
// Whether the next weights are loaded as soon as the last ones are staged. It did not help for
// other sizes.
const AHEAD = PARTS == 4u && GROUPS == 2u && BANDS == 2u;
// Units of a row that are staged side by side.
const UNITS = 4u;
// Row pitch in eights of columns (PITCH) and in vectors of four (ROW). PITCH is odd, so that eight
// rows start on different banks.
const PITCH = 2u * UNITS + 1u;
const ROW = 2u * PITCH;
// Vectors of four in a fragment of x (BAND) and in 16 columns of one tile of rows (SLAB).
const BAND = 64u;
const SLAB = BAND * BANDS;
var<workgroup> ws: array<mat2x4<f16>, PARTS * TILE * PITCH>;
var<workgroup> ys: array<f32, PARTS * 256u>;

// Offsets of these groups of 16 columns in x, for a tile of rows.
fn slabs_at(columns: vec4<u32>, tile: u32) -> vec4<u32> {
    let tiles = (params.rows + 16u * BANDS - 1u) / (16u * BANDS);
    return (columns * tiles + tile) * SLAB;
}

fn band_of(slabs: vec4<u32>, band: u32) -> Slab {
    let at = slabs + BAND * min(band, BANDS - 1u);
    return Slab(coopLoadT<OfX>(&x[at.x], 4u), coopLoadT<OfX>(&x[at.y], 4u), coopLoadT<OfX>(&x[at.z], 4u), coopLoadT<OfX>(&x[at.w], 4u));
}

fn add(x: Slab, a: OfW, b: OfW, c: OfW, d: OfW, sum: OfY) -> OfY {
    return coopMultiplyAdd(x.d, d, coopMultiplyAdd(x.c, c, coopMultiplyAdd(x.b, b, coopMultiplyAdd(x.a, a, sum))));
}

// Adds the products of the staged weights.
fn multiply(x: Slabs, base: u32, sums: Sums) -> Sums {
    let a = coopLoad<OfW>(&ws[base][0], ROW);
    let b = coopLoad<OfW>(&ws[base + 2u][0], ROW);
    let c = coopLoad<OfW>(&ws[base + 4u][0], ROW);
    let d = coopLoad<OfW>(&ws[base + 6u][0], ROW);
    var to = sums;
    to.t0 = add(x.t0, a, b, c, d, to.t0);
    if (BANDS > 1u) {
        to.t1 = add(x.t1, a, b, c, d, to.t1);
    }
    if (BANDS > 2u) {
        to.t2 = add(x.t2, a, b, c, d, to.t2);
    }
    if (BANDS > 3u) {
        to.t3 = add(x.t3, a, b, c, d, to.t3);
    }
    if (BANDS > 4u) { //~ surplus: off by one
        to.t4 = add(x.t4, a, b, c, d, to.t4);
    }
    if (BANDS > 5u) {
        to.t5 = add(x.t5, a, b, c, d, to.t5);
    }
    return to;
}

// Adds the subgroups' parts of 16 x 16 results and writes the results.
fn finish_band(sums: OfY, t0: u32, r0: u32, which: u32, lid: u32, subgroup: u32) {
    coopStoreT(sums, &ys[subgroup * 256u], 16u);
    workgroupBarrier();
    for (var i = lid; i < 256u; i += WG) {
        let t = t0 + (i >> 4u);
        let r = r0 + (i & 15u);
        var sum = 0.0;
        for (var part = 0u; part < PARTS; part++) {
            sum += ys[part * 256u + i];
        }
        if (t < params.rows && r < rows_of(which)) {
            tile64_store(t, r, which, sum * scales[t]);
        }
    }
    workgroupBarrier();
}

fn finish(sums: Sums, tile: u32, r0: u32, which: u32, lid: u32, subgroup: u32) {
    let t0 = tile * (16u * BANDS);
    finish_band(sums.t0, t0, r0, which, lid, subgroup);
    if (BANDS > 1u) { //~ surplus: comparison, guard dropped
        finish_band(sums.t1, t0 + 16u, r0, which, lid, subgroup);
    }
    if (BANDS > 2u) { //~ surplus: comparison, guard dropped
        finish_band(sums.t2, t0 + 32u, r0, which, lid, subgroup);
    }
    if (BANDS > 3u) { //~ surplus: comparison, guard dropped
        finish_band(sums.t3, t0 + 48u, r0, which, lid, subgroup);
    }
    if (BANDS > 4u) {
        finish_band(sums.t4, t0 + 64u, r0, which, lid, subgroup);
    }
    if (BANDS > 5u) { //~ surplus: comparison, off by one, guard dropped
        finish_band(sums.t5, t0 + 80u, r0, which, lid, subgroup);
    }
}
