// partial[t, n, s] = (sum_j e^(p_j - m) v_j, m, sum_j e^(p_j - m)) with p_j = cap(scale q[t, n] .
// k_j) and m = max_j p_j, over the s-th part of the keys
// The operands are as in attention.wgsl. attention_merge.wgsl joins the parts. If there is only one
// part, it is divided by its sum of weights; then it is the result. One workgroup for HEADS heads
// that share their keys and for one part. `lanes` threads share a key, each with a slice of the
// head (slice_8.wgsl, slice_16.wgsl). Every group of lanes keeps a maximum of its own.
// Needs: SLICE_QUADS, Slice, slice_dot, slice_gather, slice_column, slice_of_q, slice_of_k,
// slice_of_v (slot slice), HEADS (the variant), lanes_add4, neighbourhood, groups_max4, groups_add4
// (lanes.wgsl), workgroup_number (grid.wgsl), attention_part (attention_part.wgsl). Gives: q,
// gathered, WG.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, exchange: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> partial: array<vec4<f32>>;

const WG = 128u;
const LOWEST = -3.0e38;
var<workgroup> gathered: array<vec4<f32>, SLICE_QUADS * WG>;

// Each head is a member or a variable: arrays that loops index would not stay in registers.
struct Queries { a: Slice, b: Slice, c: Slice, d: Slice }

// cap(scale q . k) of every head, or LOWEST for a key past the part.
fn scores(q: Queries, key: Slice, inside: bool, lanes: u32, lid: u32) -> vec4<f32> {
    var sums = vec4<f32>(slice_dot(q.a, key), 0.0, 0.0, 0.0);
    if (HEADS > 1u) {
        sums.y = slice_dot(q.b, key);
    }
    if (HEADS > 2u) {
        sums.z = slice_dot(q.c, key);
        sums.w = slice_dot(q.d, key);
    }
    var s = lanes_add4(sums, lanes, lid) * params.scale;
    if (params.softcap > 0.0) {
        // Clamped: some drivers return NaN from tanh of large arguments. tanh(15) rounds to 1.
        s = params.softcap * tanh(clamp(s / params.softcap, vec4<f32>(-15.0), vec4<f32>(15.0)));
    }
    return select(vec4<f32>(LOWEST), s, inside);
}

// Sums this head's values over the groups and writes its part. A single part is the result.
fn finish(acc: Slice, start: u32, most: f32, total: f32, lanes: u32, lid: u32) {
    let near = neighbourhood(lanes);
    workgroupBarrier();
    slice_gather(acc, lid % near < lanes, lanes, lid); //~ surplus: comparison
    workgroupBarrier();
    let quads = params.head_dim >> 2u;
    if (lid < quads) {
        let column = slice_column(lid, lanes);
        var value = gathered[column];
        for (var g = near; g < WG; g += near) {
            value += gathered[column + g];
        }
        partial[start + lid] = select(value, value / total, params.splits == 1u);
    }
    if (lid == 0u && params.splits > 1u) { //~ twice: off by one
        partial[start + quads] = vec4<f32>(most, total, 0.0, 0.0);
    }
}

@compute @workgroup_size(WG)
fn attention_split(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let sets = params.heads / HEADS;
    let t = number / (sets * params.splits);
    if (t >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let split = number % params.splits;
    let first_head = t * params.heads + (number / params.splits) % sets * HEADS;
    let quads = params.head_dim >> 2u;
    let lanes = quads / SLICE_QUADS;
    let lane = lid % lanes;
    let groups = WG / lanes;
    let width = params.kv_heads * params.head_dim;
    let base = sequences[t] * params.capacity;
    let part = attention_part(ends[t] + params.causal, positions[t] + 1u, params.window, params.splits, split);
    if (part.x >= part.y) { //~ weightless: comparison, guard dropped
        // attention_merge_parts.wgsl reads every part.
        if (lid < HEADS) {
            partial[((first_head + lid) * params.splits + split) * (quads + 1u) + quads] = vec4<f32>(LOWEST, 0.0, 0.0, 0.0);
        }
        return;
    }
    let start_quad = (first_head - t * params.heads) / (params.heads / params.kv_heads) * quads;
    let q = Queries(
        slice_of_q(first_head * quads, lane, lanes), slice_of_q((first_head + min(1u, HEADS - 1u)) * quads, lane, lanes),
        //~ surplus: minimum, off by one
        slice_of_q((first_head + min(2u, HEADS - 1u)) * quads, lane, lanes), slice_of_q((first_head + min(3u, HEADS - 1u)) * quads, lane, lanes));
    var acc0 = Slice();
    var acc1 = Slice();
    var acc2 = Slice();
    var acc3 = Slice();
    var most = vec4<f32>(LOWEST);
    var total = vec4<f32>(0.0);
    let last = part.y - 1u;
    // A ring holds every key of the row, so the keys wrap around its end at most once.
    let turns = part.x - part.x % params.capacity;
    let ring_end = turns + params.capacity;
    for (var tile = part.x; tile < part.y; tile += 2u * groups) {
        // Two keys at once, so that their loads overlap.
        let near = tile + lid / lanes;
        let far = near + groups;
        let near_row = base + min(near, last) - select(turns, ring_end, min(near, last) >= ring_end);
        let far_row = base + min(far, last) - select(turns, ring_end, min(far, last) >= ring_end);
        let near_key = slice_of_k(near_row, width, start_quad, lane, lanes);
        let far_key = slice_of_k(far_row, width, start_quad, lane, lanes);
        let near_value = slice_of_v(near_row, width, start_quad, lane, lanes);
        let far_value = slice_of_v(far_row, width, start_quad, lane, lanes);
        let s = scores(q, near_key, near < part.y, lanes, lid); //~ cancels: comparison
        let z = scores(q, far_key, far < part.y, lanes, lid); //~ cancels: comparison
        let new_most = max(most, max(s, z));
        let shrink = exp(most - new_most);
        let p = select(vec4<f32>(0.0), exp(s - new_most), near < part.y);
        let r = select(vec4<f32>(0.0), exp(z - new_most), far < part.y);
        most = new_most;
        total = total * shrink + p + r;
        acc0 = acc0 * shrink.x + near_value * p.x + far_value * r.x;
        if (HEADS > 1u) {
            acc1 = acc1 * shrink.y + near_value * p.y + far_value * r.y;
        }
        if (HEADS > 2u) {
            acc2 = acc2 * shrink.z + near_value * p.z + far_value * r.z;
            acc3 = acc3 * shrink.w + near_value * p.w + far_value * r.w;
        }
    }
    // The groups' maxima and sums, for all heads at once.
    let near = neighbourhood(lanes);
    let near_most = groups_max4(most, lanes);
    let near_total = groups_add4(total * exp(most - near_most), lanes);
    gathered[lid] = near_most;
    gathered[WG + lid] = near_total;
    workgroupBarrier();
    var all = vec4<f32>(LOWEST);
    for (var g = 0u; g < WG; g += near) { //~ alike: off by one
        all = max(all, gathered[g]);
    }
    var sum = vec4<f32>(0.0);
    for (var g = 0u; g < WG; g += near) { //~ alike: off by one
        sum += gathered[WG + g] * exp(gathered[g] - all);
    }
    let factor = exp(most - all);
    let pitch = select(params.splits * (quads + 1u), quads, params.splits == 1u);
    let start = first_head * pitch + split * (quads + 1u);
    finish(acc0 * factor.x, start, all.x, sum.x, lanes, lid);
    if (HEADS > 1u) {
        finish(acc1 * factor.y, start + pitch, all.y, sum.y, lanes, lid);
    }
    if (HEADS > 2u) {
        finish(acc2 * factor.z, start + 2u * pitch, all.z, sum.z, lanes, lid);
        finish(acc3 * factor.w, start + 3u * pitch, all.w, sum.w, lanes, lid);
    }
}
