// What tiles of 16 BANDS x 16 GROUPS results share (matmul_tile64.wgsl), whatever the format of the weights (quant/units/tile64.wgsl).
// Needs: PARTS, GROUPS, BANDS, x, params.rows, rows_of, tile64_store, scales. Gives: Slabs, Sums, WG, TILE, AHEAD, UNITS, PITCH, BAND, ws,
// ys, four_of_pairs, band_of, add, multiply, finish.
alias OfX = coop_mat16x16<f16, A>;
alias OfW = coop_mat16x16<f16, B>;
alias OfY = coop_mat16x16<f32, C>;
// Fragments of x, 16 columns of each of four units, and sums, by band: those of bands that there are not are nobody's.
struct Slab { a: OfX, b: OfX, c: OfX, d: OfX }
struct Slabs { t0: Slab, t1: Slab, t2: Slab, t3: Slab }
struct Sums { t0: OfY, t1: OfY, t2: OfY, t3: OfY }
const WG = 32u * PARTS;
const TILE = 16u;
// Whether the weights that come next are loaded once the last ones are staged: for other sizes that has not been of use.
const AHEAD = PARTS == 4u && GROUPS == 2u && BANDS == 2u;
// Units of a row side by side.
const UNITS = 4u;
// Eights of columns from row to row: odd, so that eight rows start on different banks. In vectors of four, from row to row.
const PITCH = 2u * UNITS + 1u;
const ROW = 2u * PITCH;
// Vectors of four of a fragment of x, and of all rows' 16 columns.
const BAND = 64u;
const SLAB = BAND * BANDS;
var<workgroup> ws: array<mat2x4<f16>, PARTS * TILE * PITCH>;
var<workgroup> ys: array<f32, PARTS * 256u>;

// Four weights of the quants of the even and the odd ones, which are counted from the middle, where a weight is small: what scale and least lose as
// halves, which a block shares, then stays small, too.
fn four_of_pairs(even: vec2<f16>, odd: vec2<f16>, scale: f16, least: f16) -> vec4<f16> {
    let a = fma(even, vec2<f16>(scale), -vec2<f16>(least));
    let b = fma(odd, vec2<f16>(scale), -vec2<f16>(least));
    return vec4<f16>(a.x, b.x, a.y, b.y);
}

fn band_of(slabs: vec4<u32>, band: u32) -> Slab {
    let at = slabs * SLAB + BAND * min(band, BANDS - 1u); //~ surplus: sign
    return Slab(coopLoadT<OfX>(&x[at.x], 4u), coopLoadT<OfX>(&x[at.y], 4u), coopLoadT<OfX>(&x[at.z], 4u), coopLoadT<OfX>(&x[at.w], 4u));
}

fn add(x: Slab, a: OfW, b: OfW, c: OfW, d: OfW, sum: OfY) -> OfY {
    return coopMultiplyAdd(x.d, d, coopMultiplyAdd(x.c, c, coopMultiplyAdd(x.b, b, coopMultiplyAdd(x.a, a, sum))));
}

// Adds the products of what is staged.
fn multiply(x: Slabs, base: u32, sums: Sums) -> Sums {
    let a = coopLoad<OfW>(&ws[base][0], ROW);
    let b = coopLoad<OfW>(&ws[base + 2u][0], ROW);
    let c = coopLoad<OfW>(&ws[base + 4u][0], ROW);
    let d = coopLoad<OfW>(&ws[base + 6u][0], ROW);
    var to = sums;
    to.t0 = add(x.t0, a, b, c, d, to.t0);
    if (BANDS > 1u) { //~ surplus
        to.t1 = add(x.t1, a, b, c, d, to.t1);
    }
    if (BANDS > 2u) { //~ surplus
        to.t2 = add(x.t2, a, b, c, d, to.t2);
        to.t3 = add(x.t3, a, b, c, d, to.t3);
    }
    return to;
}

// Writes the 16 x 16 results whose parts the subgroups have.
fn finish_band(sums: OfY, t0: u32, r0: u32, which: u32, lid: u32, subgroup: u32) {
    coopStoreT(sums, &ys[subgroup * 256u], 16u);
    workgroupBarrier(); //~ unseen: barrier dropped
    for (var i = lid; i < 256u; i += WG) { //~ later: comparison
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
    workgroupBarrier(); //~ unseen: barrier dropped
}

fn finish(sums: Sums, r0: u32, which: u32, lid: u32, subgroup: u32) {
    finish_band(sums.t0, 0u, r0, which, lid, subgroup);
    if (BANDS > 1u) { //~ surplus
        finish_band(sums.t1, 16u, r0, which, lid, subgroup);
    }
    if (BANDS > 2u) { //~ surplus
        finish_band(sums.t2, 32u, r0, which, lid, subgroup);
        finish_band(sums.t3, 48u, r0, which, lid, subgroup);
    }
}
