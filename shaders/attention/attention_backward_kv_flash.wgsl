// dk[s, g] = sum_t,n ds q[t, n], dv[s, g] = sum_t,n p dy[t, n] with p and ds as in
// attention_backward_kv.wgsl, with cooperative matrices of f16 and f32 sums
// q [rows, heads, HEAD], k, dk, dv [rows, kv_heads, HEAD] f32, v [rows, kv_heads, HEAD], dy [rows,
// heads, HEAD] f16 divided by v_scales, dy_scales [rows] f32 (pack_f16.wgsl), stats [rows, heads,
// 2] f32 (lse, delta), spans [rows, 3] u32. One workgroup per 32 keys and kv head walks the queries
// that may see them, 32 at a time. A subgroup has 16 columns of each slice of both results. Rows
// have different scales, so no scale is a common factor of a sum over rows. p and ds include the
// row's scale divided by the largest scale, which is a power of two. The sum is multiplied by the
// largest scale at the end.
// Needs: QUERIES, qs, WIDE, QUADS, Queries, SLICES, stage_q, WG, PER_ROW, stage_k
// (tile32_rows.wgsl), PITCH, Most, SLOPE, WEIGHT, stage_dy, largest_scales, stage_v, query_of,
// slopes (tile32_slopes.wgsl), Column, Rhs, Lhs, Sums, leave, scores, Products, multiply,
// leave_products (tile32_scores.wgsl), HEAD (the variant). Gives: KINDS, KEYS, params.heads,
// params.kv_heads, q, k, step_rows, dy_scales, v_scales, stats, params.scale, dy, v, params.window,
// spans, params.causal, params.softcap.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { heads: u32, kv_heads: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f16>>;
@group(0) @binding(4) var<storage, read> v_scales: array<f32>;
@group(0) @binding(5) var<storage, read> dy: array<vec4<f16>>;
@group(0) @binding(6) var<storage, read> dy_scales: array<f32>;
@group(0) @binding(7) var<storage, read> stats: array<f32>;
@group(0) @binding(8) var<storage, read> spans: array<u32>;
@group(0) @binding(9) var<storage, read> step_rows: array<u32>;
@group(0) @binding(10) var<storage, read_write> dk: array<vec4<f32>>;
@group(0) @binding(11) var<storage, read_write> dv: array<vec4<f32>>;

const KINDS = 2u;
const KEYS = 32u;
// The array holds ds first, then p.
var<workgroup> weights: array<vec4<f16>, 2u * QUERIES * PITCH>;
struct Both { k: Column, v: Column }

// Adds the products with 16 columns of the staged queries (kind 0) or of their derivatives.
fn add(before: Column, kind: u32, subgroup: u32) -> Column {
    var sums = before;
    for (var query = kind * QUERIES; query < kind * QUERIES + QUERIES; query += 16u) {
        let right = coopLoadT<Rhs>(&qs[query * WIDE + 4u * subgroup], WIDE);
        sums.upper = coopMultiplyAdd(coopLoad<Lhs>(&weights[query * PITCH], PITCH), right, sums.upper);
        sums.lower = coopMultiplyAdd(coopLoad<Lhs>(&weights[query * PITCH + 4u], PITCH), right, sums.lower); //~ rounded: off by one
    }
    return sums;
}

fn add_both(before: Both, subgroup: u32) -> Both {
    return Both(add(before.k, 0u, subgroup), add(before.v, 1u, subgroup));
}

// Writes both results of 16 keys. `at`: the index of the first in vectors of four. `count`: the
// number of keys that exist.
fn finish(of_k: Sums, of_v: Sums, at: u32, count: u32, most: Most, subgroup: u32, lane: u32) {
    let pitch = params.kv_heads * (HEAD / 4u);
    leave(of_k, subgroup);
    for (var i = lane; i < 64u; i += 32u) { //~ later: comparison
        if ((i >> 2u) < count) {
            dk[at + (i >> 2u) * pitch + (i & 3u)] = scores[64u * subgroup + i] * (SLOPE * params.scale * most.v * most.dy);
        }
    }
    leave(of_v, subgroup);
    for (var i = lane; i < 64u; i += 32u) { //~ later: comparison
        if ((i >> 2u) < count) {
            dv[at + (i >> 2u) * pitch + (i & 3u)] = scores[64u * subgroup + i] * (WEIGHT * most.dy);
        }
    }
}

fn finish_slice(sums: Both, s0: u32, rows: u32, kv_head: u32, slice: u32, most: Most, subgroup: u32, lane: u32) {
    let at = (s0 * params.kv_heads + kv_head) * (HEAD / 4u) + slice * QUADS + 4u * subgroup;
    let count = min(rows - s0, KEYS);
    finish(sums.k.upper, sums.v.upper, at, count, most, subgroup, lane);
    let further = at + 16u * params.kv_heads * (HEAD / 4u);
    finish(sums.k.lower, sums.v.lower, further, max(count, 16u) - 16u, most, subgroup, lane);
}

// Waits for ds and p, and stages the slice again where the head has several.
fn restage(tile: Queries, slice: u32, lid: u32) {
    workgroupBarrier();
    if (SLICES > 1u) { //~ twice: comparison, guard dropped
        stage_q(tile, slice, lid);
        stage_dy(tile, slice, lid);
        workgroupBarrier();
    }
}

@compute @workgroup_size(WG)
fn attention_backward_kv_flash(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let rows = step_rows[0];
    let s0 = id.y * KEYS;
    // The rows that may see a key begin with the key's own row, unless attention is bidirectional.
    // Neither end of this range falls from one key to the next.
    let start = select(spans[3u * s0], s0, params.causal == 1u); //~ weightless: off by one
    let last = min(s0 + KEYS, rows) - 1u;
    let document = spans[3u * last + 1u];
    let end = select(document, min(document, last + params.window), params.window > 0u); //~ weightless: off by one
    let count = (max(end, start) - start) * (params.heads / params.kv_heads);
    let most = largest_scales(lid);
    let row = lid / PER_ROW;
    var c0 = Both();
    var c1 = Both();
    var c2 = Both();
    var c3 = Both();
    for (var first = 0u; first < count; first += QUERIES) {
        let tile = Queries(start, first, count, id.x);
        var sums = Products();
        for (var slice = 0u; slice < SLICES; slice++) {
            workgroupBarrier();
            stage_q(tile, slice, lid);
            stage_dy(tile, slice, lid);
            if (SLICES > 1u || first == 0u) { //~ twice: comparison, guard dropped
                stage_k(s0, rows, id.x, slice, lid);
                stage_v(s0, rows, id.x, slice, lid);
            }
            workgroupBarrier();
            sums = multiply(sums, subgroup);
        }
        leave_products(sums, subgroup);
        let query = query_of(tile, row, most);
        workgroupBarrier();
        for (var quad = lid % PER_ROW; quad < KEYS / 4u; quad += PER_ROW) { //~ surplus: comparison
            let found = slopes(query, row, quad, s0 + 4u * quad);
            weights[row * PITCH + quad] = found.ds;
            weights[(QUERIES + row) * PITCH + quad] = found.p;
        }
        restage(tile, 0u, lid);
        c0 = add_both(c0, subgroup);
        if (SLICES > 1u) { //~ surplus: comparison, guard dropped
            restage(tile, 1u, lid);
            c1 = add_both(c1, subgroup);
        }
        if (SLICES > 2u) { //~ surplus: comparison, guard dropped
            restage(tile, 2u, lid);
            c2 = add_both(c2, subgroup);
            restage(tile, 3u, lid);
            c3 = add_both(c3, subgroup);
        }
    }
    let lane = lid & 31u;
    finish_slice(c0, s0, rows, id.x, 0u, most, subgroup, lane);
    if (SLICES > 1u) {
        finish_slice(c1, s0, rows, id.x, 1u, most, subgroup, lane);
    }
    if (SLICES > 2u) {
        finish_slice(c2, s0, rows, id.x, 2u, most, subgroup, lane);
        finish_slice(c3, s0, rows, id.x, 3u, most, subgroup, lane);
    }
}
