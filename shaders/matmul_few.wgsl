// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r] for few rows of x, through cooperative matrices of f16 with f32 sums
// x [k / 16, 16 BANDS, 16] f16, 16 columns of all rows together, divided by scales [rows] f32 (pack_f16.wgsl), w [row_count, k] in a format with
// units, k a multiple of 32, bias f32 (if has_bias), y [rows, n] f32. One workgroup makes 16 BANDS x 16 results (few_bands_*.wgsl): each of
// its PARTS subgroups (few_parts_*.wgsl) takes every PARTS-th 8 units of the rows of w, four rows at a time and a unit per thread, so that
// neighbours read what lies side by side; the subgroups' sums are added at the end. Matrices are variables: arrays would leave registers.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const WG = 32u * PARTS;
const TILE = 16u;
// Units of a row side by side, and vectors of four halves of a half of each.
const UNITS = 8u;
const QUADS = 4u;
// Rows of the halves of so many units are padded so that they start on different banks.
const PITCH = UNITS * QUADS + 2u;
// Of a fragment of x, and of all rows' 16 columns, likewise.
const BAND = 64u;
const SLAB = BAND * BANDS;
var<workgroup> ws: array<vec4<f16>, PARTS * TILE * PITCH>;
var<workgroup> ys: array<f32, PARTS * 256u>;

// Stages 16 of a unit's weights; `live` is 0 past the last unit.
fn stage(at: u32, quants: vec4<u32>, scale: f32, least: f32, live: f32) {
    group_store(at, quants ^ vec4<u32>(0x80808080u), live * scale, live * (least + 128.0 * scale));
}

// Writes the 16 x 16 results whose parts the subgroups left in ys.
fn finish(t0: u32, r0: u32, lid: u32) {
    workgroupBarrier();
    for (var i = lid; i < 256u; i += WG) {
        let t = t0 + (i >> 4u);
        let r = r0 + (i & 15u);
        var sum = 0.0;
        for (var part = 0u; part < PARTS; part++) {
            sum += ys[part * 256u + i];
        }
        if (t < params.rows && r < params.row_count) {
            let at = params.row_base + r;
            let v = sum * scales[t];
            y[t * params.n + at] = select(v, v + bias[at], params.has_bias == 1u);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn matmul_few(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let k = params.k;
    let units = k >> 5u;
    let r0 = workgroup_number(id, extents) * TILE;
    let own = (lid >> 3u) & 3u;
    let last = params.row_count - 1u;
    let row_a = w_row(min(r0 + own, last), k);
    let row_b = w_row(min(r0 + own + 4u, last), k);
    let row_c = w_row(min(r0 + own + 8u, last), k);
    let row_d = w_row(min(r0 + own + 12u, last), k);
    let base = subgroup * (TILE * PITCH);
    let to = base + own * PITCH + QUADS * (lid & 7u);
    var c0 = coop_mat16x16<f32, C>();
    var c1 = coop_mat16x16<f32, C>();
    var c2 = coop_mat16x16<f32, C>();
    var c3 = coop_mat16x16<f32, C>();
    for (var first = UNITS * subgroup; first < units; first += UNITS * PARTS) {
        let unit = first + (lid & 7u);
        let live = select(0.0, 1.0, unit < units);
        let a = w_unit(row_a, k, min(unit, units - 1u));
        let b = w_unit(row_b, k, min(unit, units - 1u));
        let c = w_unit(row_c, k, min(unit, units - 1u));
        let d = w_unit(row_d, k, min(unit, units - 1u));
        subgroupBarrier();
        stage(to, a.low, a.scale.x, a.least.x, live);
        stage(to + 4u * PITCH, b.low, b.scale.x, b.least.x, live);
        stage(to + 8u * PITCH, c.low, c.scale.x, c.least.x, live);
        stage(to + 12u * PITCH, d.low, d.scale.x, d.least.x, live);
        subgroupBarrier();
        for (var j = 0u; j < UNITS; j++) {
            let slab = SLAB * w_halves(min(first + j, units - 1u)).x;
            let of_w = coopLoad<coop_mat16x16<f16, B>>(&ws[base + QUADS * j], PITCH);
            c0 = coopMultiplyAdd(coopLoadT<coop_mat16x16<f16, A>>(&x[slab], 4u), of_w, c0);
            if (BANDS > 1u) {
                c1 = coopMultiplyAdd(coopLoadT<coop_mat16x16<f16, A>>(&x[slab + BAND], 4u), of_w, c1);
            }
            if (BANDS > 2u) {
                c2 = coopMultiplyAdd(coopLoadT<coop_mat16x16<f16, A>>(&x[slab + 2u * BAND], 4u), of_w, c2);
                c3 = coopMultiplyAdd(coopLoadT<coop_mat16x16<f16, A>>(&x[slab + 3u * BAND], 4u), of_w, c3);
            }
        }
        subgroupBarrier();
        stage(to, a.high, a.scale.y, a.least.y, live);
        stage(to + 4u * PITCH, b.high, b.scale.y, b.least.y, live);
        stage(to + 8u * PITCH, c.high, c.scale.y, c.least.y, live);
        stage(to + 12u * PITCH, d.high, d.scale.y, d.least.y, live);
        subgroupBarrier();
        // Drivers do not know how often, and so keep from repeating the outer loop's body until instruction caches no longer hold it.
        for (var once = 0u; once < min(k, 1u); once++) {
            for (var j = 0u; j < UNITS; j++) {
                let slab = SLAB * w_halves(min(first + j, units - 1u)).y;
                let of_w = coopLoad<coop_mat16x16<f16, B>>(&ws[base + QUADS * j], PITCH);
                c0 = coopMultiplyAdd(coopLoadT<coop_mat16x16<f16, A>>(&x[slab], 4u), of_w, c0);
                if (BANDS > 1u) {
                    c1 = coopMultiplyAdd(coopLoadT<coop_mat16x16<f16, A>>(&x[slab + BAND], 4u), of_w, c1);
                }
                if (BANDS > 2u) {
                    c2 = coopMultiplyAdd(coopLoadT<coop_mat16x16<f16, A>>(&x[slab + 2u * BAND], 4u), of_w, c2);
                    c3 = coopMultiplyAdd(coopLoadT<coop_mat16x16<f16, A>>(&x[slab + 3u * BAND], 4u), of_w, c3);
                }
            }
        }
    }
    let to_ys = subgroup * 256u;
    let v0 = c0;
    coopStoreT(v0, &ys[to_ys], 16u);
    finish(0u, r0, lid);
    if (BANDS > 1u) {
        let v1 = c1;
        coopStoreT(v1, &ys[to_ys], 16u);
        finish(16u, r0, lid);
    }
    if (BANDS > 2u) {
        let v2 = c2;
        coopStoreT(v2, &ys[to_ys], 16u);
        finish(32u, r0, lid);
        let v3 = c3;
        coopStoreT(v3, &ys[to_ys], 16u);
        finish(48u, r0, lid);
    }
}
