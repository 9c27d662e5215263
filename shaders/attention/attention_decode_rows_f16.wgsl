// halves = attention.wgsl in f16 (layout: pack_f16.wgsl) for `rows` rows over few keys, each row of
// another sequence, with the steps before it
// Computes attention_decode_128.wgsl for each row, from the operands of that kernel. Rows are not
// scaled: scales [rows] f32 are ones. One workgroup has HEADS heads of q that share their keys.
// LANES threads share a key. Each has eight elements of the key, and the score of one of the heads
// for one of four keys (sixteen.wgsl). Every group of lanes has references of its own, which are
// raised only where a score exceeds them by RAISE.
// Needs: dot8, keys_of, values_of (decode_keys.wgsl), HEADS (the variant), lanes_other4, lanes_sum4
// (lanes_near.wgsl), halves_of_quad (half_scale.wgsl), workgroup_number (grid.wgsl), finish_heads,
// gathered_eight (rows_heads.wgsl), sixteen_slot, sixteen_add, sixteen_any, sixteen_max
// (sixteen.wgsl), sixteen_here, sixteen_share, sixteen_of, sixteen_total (sixteen_share.wgsl),
// k_state_read8 (the type of k_state), v_state_read8 (the type of v_state). Gives: gathered,
// params.heads, SUBS, q, params.q_heads, params.normed, wq, k, wk, v, params.eps, params.scale,
// GROUPS, table, WG.
struct Params {
    q_heads: u32, heads: u32, group: u32, rows: u32, capacity: u32, normed: u32, exchange: u32, row_pitch: u32, slab_pitch: u32, eps: f32, scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> wq: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> wk: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> table: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> positions: array<u32>;
@group(0) @binding(8) var<storage, read> sequences: array<u32>;
@group(0) @binding(9) var<storage, read_write> k_state: array<vec4<u32>>;
@group(0) @binding(10) var<storage, read_write> v_state: array<vec4<u32>>;
@group(0) @binding(11) var<storage, read_write> scales: array<f32>;
@group(0) @binding(12) var<storage, read_write> halves: array<vec2<u32>>;

const WG = 256u;
const LANES = 16u;
// Keys of a workgroup at a time; a thread has four of them.
const GROUPS = WG / LANES;
const KEYS = 4u * GROUPS;
const SUBS = WG / 32u;
// How far a score may exceed its reference, as a power of two.
const RAISE = 14.0;
// Heads that this workgroup finishes; later the sums of two heads of every 32 threads.
var<workgroup> gathered: array<vec4<f32>, 64u * SUBS>;
// References and sums of weights of every 32 threads: one component per head.
var<workgroup> mosts: array<vec4<f32>, SUBS>;
var<workgroup> totals: array<vec4<f32>, SUBS>;

// Each head is a member: arrays that loops index would not stay in registers.
struct Heads { a: mat2x4<f32>, b: mat2x4<f32>, c: mat2x4<f32>, d: mat2x4<f32> }

// This thread's shares of the scores of a key.
fn shares(queries: Heads, key: mat2x4<f32>) -> vec4<f32> {
    var sums = vec4<f32>(dot8(queries.a, key), 0.0, 0.0, 0.0);
    if (HEADS > 1u) {
        sums.y = dot8(queries.b, key);
    }
    if (HEADS > 2u) {
        sums.z = dot8(queries.c, key);
        sums.w = dot8(queries.d, key);
    }
    return sums;
}

fn scaled(sums: Heads, by: vec4<f32>) -> Heads {
    var s = sums;
    s.a *= by.x;
    if (HEADS > 1u) {
        s.b *= by.y;
    }
    if (HEADS > 2u) {
        s.c *= by.z;
        s.d *= by.w;
    }
    return s;
}

fn added(sums: Heads, value: mat2x4<f32>, weight: vec4<f32>) -> Heads {
    var s = sums;
    s.a += value * weight.x;
    if (HEADS > 1u) {
        s.b += value * weight.y;
    }
    if (HEADS > 2u) {
        s.c += value * weight.z;
        s.d += value * weight.w;
    }
    return s;
}

// Puts a head's sums over 32 threads into `gathered`, by quads.
fn gather(sum: mat2x4<f32>, head: u32, lid: u32) {
    let upper = (lid & LANES) != 0u;
    let part = select(sum[0], sum[1], upper) + lanes_other4(select(sum[1], sum[0], upper), LANES, lid);
    gathered[32u * (SUBS * head + lid / 32u) + 2u * (lid % LANES) + select(0u, 1u, upper)] = part;
}

// Writes two heads from the sums of all threads.
fn leave(a: mat2x4<f32>, b: mat2x4<f32>, weights: vec2<f32>, t: u32, first_head: u32, lid: u32) {
    workgroupBarrier();
    gather(a, 0u, lid);
    if (HEADS > 1u) { //~ surplus: comparison, guard dropped
        gather(b, 1u, lid);
    }
    workgroupBarrier();
    let head = lid / 32u;
    if (head < min(HEADS, 2u)) { //~ never: off by one
        var joined = gathered[32u * SUBS * head + lid % 32u];
        for (var g = 1u; g < SUBS; g++) {
            joined += gathered[32u * (SUBS * head + g) + lid % 32u];
        }
        joined *= 1.0 / weights[head];
        let quad = 32u * first_head + lid;
        halves[t * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u)] = halves_of_quad(joined);
    }
}

@compute @workgroup_size(WG)
fn attention_decode_rows_f16(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let n = workgroup_number(id, extents);
    let sets = params.q_heads / HEADS;
    let t = n / sets;
    if (t >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let first_head = HEADS * (n - t * sets);
    let kv_head = first_head / params.group;
    let lane = lid % LANES;
    let width = 128u * params.heads;
    let eight = LANES * kv_head + lane;
    let here = positions[t];
    let base = sequences[t] * params.capacity;
    let last = base + max(here, 1u) - 1u; //~ weightless: sign, off by one
    let near = lid / LANES;
    finish_heads(t, first_head, kv_head, base + here, first_head % params.group == 0u, lid);
    var queries = Heads();
    queries.a = gathered_eight(0u, lane);
    if (HEADS > 1u) {
        queries.b = gathered_eight(1u, lane);
    }
    if (HEADS > 2u) {
        queries.c = gathered_eight(2u, lane);
        queries.d = gathered_eight(3u, lane);
    }
    // This row's own key: all threads start with its score as the reference, only the first 16
    // count it.
    let counted = select(0.0, 1.0, near == 0u); //~ free: off by one
    let slot = sixteen_slot(LANES, lid);
    let lane_here = sixteen_here(lid);
    let own = lanes_sum4(shares(queries, gathered_eight(HEADS, lane)), LANES, lid);
    var most = own[slot & 3u];
    var total = select(0.0, counted, slot < 4u);
    var acc = added(Heads(), gathered_eight(HEADS + 1u, lane), vec4<f32>(counted));
    for (var tile = 0u; tile < here; tile += KEYS) {
        let keys = keys_of(base + tile + near, last, width, eight);
        let values = values_of(base + tile + near, last, width, eight);
        let s = sixteen_add(
            shares(queries, k_state_read8(keys.a)), shares(queries, k_state_read8(keys.b)), shares(queries, k_state_read8(keys.c)),
            shares(queries, k_state_read8(keys.d)), LANES, lid);
        let inside = tile + near + (slot >> 2u) * GROUPS < here;
        if (sixteen_any(inside && s > most + RAISE)) { //~ cancels: sign, comparison, guard dropped
            let reference = max(most, sixteen_max(select(most, s, inside), LANES, lid));
            let shrink = exp2(most - reference);
            most = reference;
            total *= shrink;
            sixteen_share(shrink, lid);
            acc = scaled(acc, sixteen_of(shrink, 0u, lane_here, LANES, lid)); //~ alike: off by one
        }
        let p = select(0.0, exp2(s - most), inside);
        total += p;
        sixteen_share(p, lid);
        acc = added(acc, v_state_read8(values.a), sixteen_of(p, 0u, lane_here, LANES, lid));
        acc = added(acc, v_state_read8(values.b), sixteen_of(p, 1u, lane_here, LANES, lid));
        acc = added(acc, v_state_read8(values.c), sixteen_of(p, 2u, lane_here, LANES, lid));
        acc = added(acc, v_state_read8(values.d), sixteen_of(p, 3u, lane_here, LANES, lid));
    }
    // The references and sums of weights of all heads: of 16 threads, then of 32.
    total = sixteen_total(total, LANES, lid);
    sixteen_share(most, lid);
    let references = sixteen_of(most, 0u, lane_here, LANES, lid); //~ alike: off by one
    sixteen_share(total, lid);
    let weights = sixteen_of(total, 0u, lane_here, LANES, lid); //~ alike: off by one
    mosts[lid / 32u] = max(references, lanes_other4(references, LANES, lid));
    workgroupBarrier();
    var highest = mosts[0];
    for (var g = 1u; g < SUBS; g++) { //~ clamped: comparison
        highest = max(highest, mosts[g]);
    }
    let factor = exp2(references - highest);
    let weight = weights * factor;
    totals[lid / 32u] = weight + lanes_other4(weight, LANES, lid);
    acc = scaled(acc, factor);
    workgroupBarrier();
    var all = totals[0];
    for (var g = 1u; g < SUBS; g++) {
        all += totals[g];
    }
    leave(acc.a, acc.b, all.xy, t, first_head, lid);
    if (HEADS > 2u) {
        leave(acc.c, acc.d, all.zw, t, first_head + 2u, lid);
    }
    if (first_head == 0u && lid == 0u) { //~ twice: off by one, guard dropped
        scales[t] = 1.0;
    }
}
