// dq[t, n] = sum_s ds k[s] with ds as in attention_backward_q.wgsl, with cooperative matrices of
// f16 and f32 sums
// q, dq [rows, heads, HEAD], k [rows, kv_heads, HEAD] f32, v [rows, kv_heads, HEAD], dy [rows,
// heads, HEAD] f16 divided by v_scales, dy_scales [rows] f32 (pack_f16.wgsl), stats [rows, heads,
// 2] f32 (lse, delta), spans [rows, 3] u32. One workgroup has up to 32 queries: neighbouring rows
// with all heads that share a kv head. It walks their keys, 32 at a time. A subgroup has 16 columns
// of each slice of the results. At the end, the sums of a row are multiplied by the row's scale of
// dy, and all sums by the largest scale of v.
// Needs: QUERIES, ks, WIDE, Queries, exists, place, row_of, QUADS, SLICES, stage_k, WG,
// keys_of_rows, PER_ROW, stage_q (tile32_rows.wgsl), PITCH, largest_scales, query_of, Most,
// stage_dy, stage_v, slopes, SLOPE (tile32_slopes.wgsl), Column, Rhs, Lhs, Sums, leave, scores,
// Products, multiply, leave_products (tile32_scores.wgsl), HEAD (the variant). Gives: KINDS, KEYS,
// params.heads, params.kv_heads, q, k, step_rows, dy_scales, v_scales, stats, params.scale, dy, v,
// params.window, spans, params.causal, params.softcap.
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
@group(0) @binding(10) var<storage, read_write> dq: array<vec4<f32>>;

const KINDS = 2u;
const KEYS = 32u;
var<workgroup> ds: array<vec4<f16>, QUERIES * PITCH>;

// The scale of row t of dy, or 1 for a row of zeros. It is a power of two.
fn scale_of(t: u32) -> f32 {
    return select(dy_scales[t], 1.0, dy_scales[t] == 0.0);
}

// Adds the products with 16 columns of the staged keys.
fn add(before: Column, subgroup: u32) -> Column {
    var sums = before;
    for (var key = 0u; key < KEYS; key += 16u) {
        let right = coopLoadT<Rhs>(&ks[key * WIDE + 4u * subgroup], WIDE);
        sums.upper = coopMultiplyAdd(coopLoadT<Lhs>(&ds[key / 4u], PITCH), right, sums.upper);
        sums.lower = coopMultiplyAdd(coopLoadT<Lhs>(&ds[16u * PITCH + key / 4u], PITCH), right, sums.lower);
    }
    return sums;
}

// Writes the sums of 16 queries from `first` on, in column `column` in vectors of four. A sum is a
// multiple of `unit` times the scale of its row.
fn finish(sums: Sums, tile: Queries, first: u32, column: u32, unit: f32, subgroup: u32, lane: u32) {
    leave(sums, subgroup);
    for (var i = lane; i < 64u; i += 32u) { //~ later: comparison
        let row = first + (i >> 2u);
        if (exists(tile, row)) {
            dq[place(tile, row) * (HEAD / 4u) + column + (i & 3u)] = scores[64u * subgroup + i] * (unit * scale_of(row_of(tile, row)));
        }
    }
}

fn finish_slice(sums: Column, tile: Queries, slice: u32, unit: f32, subgroup: u32, lane: u32) {
    finish(sums.upper, tile, 0u, slice * QUADS + 4u * subgroup, unit, subgroup, lane);
    finish(sums.lower, tile, 16u, slice * QUADS + 4u * subgroup, unit, subgroup, lane);
}

// Waits for the derivatives by the scores, and stages the slice again where the head has several.
fn restage(key0: u32, end: u32, kv_head: u32, slice: u32, lid: u32) {
    workgroupBarrier();
    if (SLICES > 1u) { //~ twice: comparison, guard dropped
        stage_k(key0, end, kv_head, slice, lid);
        workgroupBarrier();
    }
}

@compute @workgroup_size(WG)
fn attention_backward_q_flash(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let group = params.heads / params.kv_heads;
    let tokens = QUERIES / group;
    let t0 = id.y * tokens;
    let count = min(tokens, step_rows[0] - t0);
    let tile = Queries(t0, 0u, count * group, id.x);
    let keys = keys_of_rows(t0, count);
    let row = lid / PER_ROW;
    let most_v = largest_scales(lid).v;
    let query = query_of(tile, row, Most(scale_of(row_of(tile, row)), most_v));
    var c0 = Column();
    var c1 = Column();
    var c2 = Column();
    var c3 = Column();
    for (var key0 = keys.x; key0 < keys.y; key0 += KEYS) {
        var sums = Products();
        for (var slice = 0u; slice < SLICES; slice++) {
            workgroupBarrier();
            if (SLICES > 1u || key0 == keys.x) { //~ twice: comparison, guard dropped
                stage_q(tile, slice, lid);
                stage_dy(tile, slice, lid);
            }
            stage_k(key0, keys.y, id.x, slice, lid);
            stage_v(key0, keys.y, id.x, slice, lid);
            workgroupBarrier();
            sums = multiply(sums, subgroup);
        }
        leave_products(sums, subgroup);
        workgroupBarrier();
        for (var quad = lid % PER_ROW; quad < KEYS / 4u; quad += PER_ROW) { //~ surplus: comparison
            ds[row * PITCH + quad] = slopes(query, row, quad, key0 + 4u * quad).ds;
        }
        restage(key0, keys.y, id.x, 0u, lid);
        c0 = add(c0, subgroup);
        if (SLICES > 1u) { //~ surplus: comparison, guard dropped
            restage(key0, keys.y, id.x, 1u, lid);
            c1 = add(c1, subgroup);
        }
        if (SLICES > 2u) { //~ surplus: comparison, guard dropped
            restage(key0, keys.y, id.x, 2u, lid);
            c2 = add(c2, subgroup);
            restage(key0, keys.y, id.x, 3u, lid);
            c3 = add(c3, subgroup);
        }
    }
    let lane = lid & 31u;
    let unit = SLOPE * params.scale * most_v;
    finish_slice(c0, tile, 0u, unit, subgroup, lane);
    if (SLICES > 1u) {
        finish_slice(c1, tile, 1u, unit, subgroup, lane);
    }
    if (SLICES > 2u) {
        finish_slice(c2, tile, 2u, unit, subgroup, lane);
        finish_slice(c3, tile, 3u, unit, subgroup, lane);
    }
}
