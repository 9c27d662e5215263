// What matmul_few.wgsl and matmul_few_pair.wgsl do: tiles of 16 BANDS x 16 GROUPS results.
alias OfX = coop_mat16x16<f16, A>;
alias OfW = coop_mat16x16<f16, B>;
alias OfY = coop_mat16x16<f32, C>;
// Fragments of x, 16 columns of each of four units, and sums, by band: those of bands that there are not are nobody's.
struct Slab { a: OfX, b: OfX, c: OfX, d: OfX }
struct Slabs { t0: Slab, t1: Slab, t2: Slab, t3: Slab }
struct Sums { t0: OfY, t1: OfY, t2: OfY, t3: OfY }
const WG = 32u * PARTS;
const TILE = 16u;
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

// Four weights of the bytes of a word, signed and 128 up: as halves they are 1152 more, by their place in the significand, and without it exact.
// They are counted from the middle, where a weight is small: what scale and least lose as halves, which a block shares, then stays small, too.
fn four(bytes: u32, scale: vec2<f16>, least: vec2<f16>) -> vec4<f16> {
    let even = vec2<f16>(unpack2x16float((bytes & 0x00ff00ffu) | 0x64006400u)) - vec2<f16>(1152.0h + w_middle);
    let odd = vec2<f16>(unpack2x16float(((bytes >> 8u) & 0x00ff00ffu) | 0x64006400u)) - vec2<f16>(1152.0h + w_middle);
    let a = fma(even, scale, -least);
    let b = fma(odd, scale, -least);
    return vec4<f16>(a.x, b.x, a.y, b.y);
}

// Stages the low or the high half of a unit; `live` is 0 past the last unit.
fn stage_row(at: u32, held: w_Held, unit: u32, late: bool, live: f16) {
    let unpacked = w_unit_of(held, unit);
    let bytes = select(unpacked.low, unpacked.high, late) ^ vec4<u32>(0x80808080u);
    let exact = select(unpacked.scale.x, unpacked.scale.y, late);
    let scale = vec2<f16>(live * f16(exact));
    let least = vec2<f16>(live * f16(fma(-w_middle, exact, select(unpacked.least.x, unpacked.least.y, late))));
    ws[at] = mat2x4<f16>(four(bytes.x, scale, least), four(bytes.y, scale, least));
    ws[at + 1u] = mat2x4<f16>(four(bytes.z, scale, least), four(bytes.w, scale, least));
}

// Stages the halves of two rows of a group, once nobody reads the group before it.
fn stage(at: u32, a: w_Held, b: w_Held, unit: u32, late: bool, live: f16) {
    subgroupBarrier();
    stage_row(at, a, unit, late, live);
    stage_row(at + 8u * PITCH, b, unit, late, live);
    subgroupBarrier();
}

fn band_of(slabs: vec4<u32>, band: u32) -> Slab {
    let at = slabs * SLAB + BAND * min(band, BANDS - 1u);
    return Slab(coopLoadT<OfX>(&x[at.x], 4u), coopLoadT<OfX>(&x[at.y], 4u), coopLoadT<OfX>(&x[at.z], 4u), coopLoadT<OfX>(&x[at.w], 4u));
}

fn slabs_of(first: u32, last: u32, late: bool) -> Slabs {
    let a = w_halves(first);
    let b = w_halves(min(first + 1u, last));
    let c = w_halves(min(first + 2u, last));
    let d = w_halves(min(first + 3u, last));
    let at = select(vec4<u32>(a.x, b.x, c.x, d.x), vec4<u32>(a.y, b.y, c.y, d.y), late);
    return Slabs(band_of(at, 0u), band_of(at, 1u), band_of(at, 2u), band_of(at, 3u));
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
    if (BANDS > 1u) {
        to.t1 = add(x.t1, a, b, c, d, to.t1);
    }
    if (BANDS > 2u) {
        to.t2 = add(x.t2, a, b, c, d, to.t2);
        to.t3 = add(x.t3, a, b, c, d, to.t3);
    }
    return to;
}

// Writes the 16 x 16 results whose parts the subgroups have.
fn finish_band(sums: OfY, t0: u32, r0: u32, second: bool, lid: u32, subgroup: u32) {
    coopStoreT(sums, &ys[subgroup * 256u], 16u);
    workgroupBarrier();
    for (var i = lid; i < 256u; i += WG) {
        let t = t0 + (i >> 4u);
        let r = r0 + (i & 15u);
        var sum = 0.0;
        for (var part = 0u; part < PARTS; part++) {
            sum += ys[part * 256u + i];
        }
        if (t < params.rows && r < rows_of(second)) {
            few_store(t, r, second, sum * scales[t]);
        }
    }
    workgroupBarrier();
}

fn finish(sums: Sums, r0: u32, second: bool, lid: u32, subgroup: u32) {
    finish_band(sums.t0, 0u, r0, second, lid, subgroup);
    if (BANDS > 1u) {
        finish_band(sums.t1, 16u, r0, second, lid, subgroup);
    }
    if (BANDS > 2u) {
        finish_band(sums.t2, 32u, r0, second, lid, subgroup);
        finish_band(sums.t3, 48u, r0, second, lid, subgroup);
    }
}

// Weights of four rows.
struct Four { a: w_Held, b: w_Held, c: w_Held, d: w_Held }

// Makes the results of the 16 GROUPS rows of weights from r0 on, of the second weight if there is one and `second`.
fn few_tile(r0: u32, second: bool, lid: u32, subgroup: u32) {
    let k = params.k;
    let last = (k >> 5u) - 1u;
    let lane = lid & (UNITS - 1u);
    let own = (lid >> 2u) & 7u;
    let base = subgroup * (TILE * PITCH);
    let to = base + own * PITCH + 2u * lane;
    let row = vec4<u32>(r0 + own, r0 + own + 8u, r0 + own + 16u, r0 + own + 24u);
    let rows = rows_at(min(row, vec4<u32>(rows_of(second) - 1u)), k);
    var sums_0 = Sums();
    var sums_1 = Sums();
    for (var first = UNITS * subgroup; first <= last; first += UNITS * PARTS) {
        let live = select(0.0h, 1.0h, first + lane <= last);
        let unit = min(first + lane, last);
        let held = four_of(rows, k, unit, second);
        // Drivers do not know how often, and so keep from repeating the outer loop's body until instruction caches no longer hold it.
        for (var once = 0u; once < min(k, 1u); once++) {
            subgroupBarrier();
        }
        let early = slabs_of(first, last, false);
        stage(to, held.a, held.b, unit, false, live);
        sums_0 = multiply(early, base, sums_0);
        if (GROUPS > 1u) {
            stage(to, held.c, held.d, unit, false, live);
            sums_1 = multiply(early, base, sums_1);
        }
        let late = slabs_of(first, last, true);
        stage(to, held.a, held.b, unit, true, live);
        sums_0 = multiply(late, base, sums_0);
        if (GROUPS > 1u) {
            stage(to, held.c, held.d, unit, true, live);
            sums_1 = multiply(late, base, sums_1);
        }
    }
    finish(sums_0, r0, second, lid, subgroup);
    if (GROUPS > 1u) {
        finish(sums_1, r0 + TILE, second, lid, subgroup);
    }
}
