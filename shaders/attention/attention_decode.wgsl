// packed = attention.wgsl in 8 bits (decode_q8.wgsl) or as f32 (decode_f32.wgsl) for one row over
// few keys, with the steps before it: the norms and rotations of norm_rope_heads.wgsl, and the
// append of this row's key and value
// q [q_heads, head_dim], k, v [heads, head_dim] f32; head_dim is 32, 64, 128 or 256, or 512 with
// 512 threads. The other operands are as in norm_rope_heads.wgsl. Without append the states hold
// this row already. One workgroup per head of q; `lanes` threads share a key, each with a slice of
// the head (slice_8.wgsl).
// Needs: WG (the variant), SLICE_QUADS, Slice, slice_of_k, slice_of_v, slice_dot, slice_gather,
// slice_column (slice_8.wgsl), lanes_add4, neighbourhood, groups_max4, groups_add4 (lanes.wgsl),
// head_turns (head_turns.wgsl), squares4, inverse_root (square_sums.wgsl), k_state_scaled,
// k_state_store4, k_state_rounded (the type of k_state), v_state_store4, v_state_rounded (the type
// of v_state), workgroup_number (grid.wgsl), decode_store (slot result). Gives: q, gathered, table.
// Bindings of pieces: packed (slot result).
struct Params { q_heads: u32, heads: u32, head_dim: u32, dim: u32, capacity: u32, window: u32, append: u32, norm_q: u32, norm_k: u32, norm_v: u32, exchange: u32, eps: f32, scale: f32, softcap: f32 }
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

const LOWEST = -3.0e38;
// Heads of q, k and v, `quads` quads each. Heads before their rotation begin at 0, rotated heads at
// FINISHED. Later the array holds sums over keys.
const FINISHED = WG;
var<workgroup> gathered: array<vec4<f32>, SLICE_QUADS * WG>;
// Maximum and sum of weights of every neighbourhood, which has at least four threads.
var<workgroup> weighed: array<vec2<f32>, WG / 4u>;

// Four keys or values of a thread.
struct Four { a: Slice, b: Slice, c: Slice, d: Slice }

struct Place { base: u32, turns: u32, ring_end: u32, last: u32, width: u32, quad: u32, lane: u32, lanes: u32, groups: u32 }

fn row_of(p: Place, key: u32) -> u32 {
    let near = min(key, p.last);
    return p.base + near - select(p.turns, p.ring_end, near >= p.ring_end);
}

fn keys_of(p: Place, key: u32) -> Four {
    return Four(
        slice_of_k(row_of(p, key), p.width, p.quad, p.lane, p.lanes), slice_of_k(row_of(p, key + p.groups), p.width, p.quad, p.lane, p.lanes),
        slice_of_k(row_of(p, key + 2u * p.groups), p.width, p.quad, p.lane, p.lanes), slice_of_k(row_of(p, key + 3u * p.groups), p.width, p.quad, p.lane, p.lanes));
}

fn values_of(p: Place, key: u32) -> Four {
    return Four(
        slice_of_v(row_of(p, key), p.width, p.quad, p.lane, p.lanes), slice_of_v(row_of(p, key + p.groups), p.width, p.quad, p.lane, p.lanes),
        slice_of_v(row_of(p, key + 2u * p.groups), p.width, p.quad, p.lane, p.lanes), slice_of_v(row_of(p, key + 3u * p.groups), p.width, p.quad, p.lane, p.lanes));
}

// cap(scale q . k) of four keys, from the slices' parts of the sums.
fn scores(sums: vec4<f32>, lanes: u32, lid: u32) -> vec4<f32> {
    let s = lanes_add4(sums, lanes, lid) * params.scale;
    if (params.softcap > 0.0) {
        // Clamped: some drivers return NaN from tanh of large arguments. tanh(15) rounds to 1.
        return params.softcap * tanh(clamp(s / params.softcap, vec4<f32>(-15.0), vec4<f32>(15.0)));
    }
    return s;
}

// A thread's slice of a finished head.
fn finished(start: u32, lane: u32) -> Slice {
    return Slice(gathered[FINISHED + start + 2u * lane], gathered[FINISHED + start + 2u * lane + 1u]);
}

// Finishes the heads. The first `quads` threads have the head of q, the next `quads` the head of k,
// the next the head of v.
fn finish_heads(n: u32, kv_head: u32, quads: u32, slot: u32, stores: bool, lid: u32) {
    let part = lid / quads;
    let quad = lid % quads;
    let turns = head_turns(0u, quad, params.dim);
    var x = vec4<f32>(0.0);
    var weight = vec4<f32>(1.0);
    var normed = false;
    if (part == 0u) {
        x = q[n * quads + quad];
        normed = params.norm_q == 1u;
        if (normed) {
            weight = wq[quad];
        }
    } else if (part == 1u && params.append == 1u) {
        x = k[kv_head * quads + quad];
        normed = params.norm_k == 1u;
        if (normed) {
            weight = wk[quad];
        }
    } else if (part == 2u && params.append == 1u) { //~ surplus: guard dropped
        x = v[kv_head * quads + quad];
        normed = params.norm_v == 1u;
    }
    let squared = lanes_add4(vec4<f32>(squares4(vec2<f32>(0.0), x), 0.0, 0.0), quads, lid).xy;
    let factors = select(vec2<f32>(1.0), inverse_root(squared, f32(params.head_dim), params.eps), normed);
    x = x * factors.x * factors.y * weight;
    if (part < 3u) { //~ surplus: comparison, off by one, guard dropped
        gathered[lid] = x;
    }
    workgroupBarrier();
    let half = params.dim >> 3u;
    if (part < 2u && quad < 2u * half) {
        let upper = quad >= half;
        let other = gathered[select(lid + half, lid - half, upper)];
        x = x * turns[0] + select(-other, other, upper) * turns[1];
    }
    // Attention uses the key and the value as the state stores them.
    var most = vec4<f32>(0.0);
    if (k_state_scaled) {
        workgroupBarrier();
        if (part < 3u) { //~ surplus: comparison, off by one, guard dropped
            gathered[lid] = abs(x);
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            most = max(most, gathered[(lid & ~7u) + i]);
        }
    }
    let largest = max(max(most.x, most.y), max(most.z, most.w));
    if (part == 1u && params.append == 1u) {
        if (stores) { //~ twice: guard dropped
            k_state_store4(slot, params.heads * params.head_dim, kv_head * quads + quad, x, largest);
        }
        x = k_state_rounded(x, largest);
    } else if (part == 2u && params.append == 1u) {
        if (stores) { //~ twice: guard dropped
            v_state_store4(slot, params.heads * params.head_dim, kv_head * quads + quad, x, largest);
        }
        x = v_state_rounded(x, largest);
    }
    if (part < 3u) { //~ surplus: comparison, off by one, guard dropped
        gathered[FINISHED + lid] = x;
    }
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn attention_decode(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let n = workgroup_number(id, extents);
    if (n >= params.q_heads) {
        return;
    }
    let group = params.q_heads / params.heads;
    let kv_head = n / group;
    let quads = params.head_dim >> 2u;
    let lanes = quads / SLICE_QUADS;
    let lane = lid % lanes;
    let groups = WG / lanes;
    let here = positions[0] + 1u;
    let base = sequences[0] * params.capacity;
    let start = select(0u, here - min(here, params.window), params.window > 0u);
    // One past the last key that the states hold. They lack this row's own key when this kernel
    // appends it.
    let end = here - params.append;
    let turns = start - start % params.capacity;
    //~ dropped: sign, minimum, off by one
    let place = Place(base, turns, turns + params.capacity, max(end, 1u) - 1u, params.heads * params.head_dim, kv_head * quads, lane, lanes, groups);
    // The first keys and values are loaded while the heads are finished.
    var key = keys_of(place, start + lid / lanes);
    var value = values_of(place, start + lid / lanes);
    finish_heads(n, kv_head, quads, base + (here - 1u) % params.capacity, n % group == 0u, lid);
    let query = finished(0u, lane);
    var acc = Slice();
    var most = LOWEST;
    var total = 0.0;
    if (params.append == 1u) {
        let s = scores(vec4<f32>(slice_dot(query, finished(quads, lane))), lanes, lid).x; //~ alike: component
        // Only the first group counts this row's own key.
        most = select(LOWEST, s, lid < lanes);
        total = select(0.0, 1.0, lid < lanes); //~ weightless: comparison
        acc = finished(2u * quads, lane) * total;
    }
    for (var tile = start; tile < end; tile += 4u * groups) {
        let near = tile + lid / lanes;
        let inside = vec4<u32>(near, near + groups, near + 2u * groups, near + 3u * groups) < vec4<u32>(end);
        let sums = vec4<f32>(slice_dot(query, key.a), slice_dot(query, key.b), slice_dot(query, key.c), slice_dot(query, key.d));
        let s = select(vec4<f32>(LOWEST), scores(sums, lanes, lid), inside);
        let new_most = max(most, max(max(s.x, s.y), max(s.z, s.w))); //~ cancels: component
        let shrink = exp(most - new_most);
        let p = select(vec4<f32>(0.0), exp(s - new_most), inside);
        most = new_most;
        total = total * shrink + (p.x + p.y + (p.z + p.w));
        acc = acc * shrink + value.a * p.x + value.b * p.y + (value.c * p.z + value.d * p.w);
        if (tile + 4u * groups < end) { //~ dropped: comparison, off by one, guard dropped
            key = keys_of(place, near + 4u * groups);
            value = values_of(place, near + 4u * groups);
        }
    }
    let near = neighbourhood(lanes);
    let near_most = groups_max4(vec4<f32>(most), lanes).x; //~ alike: component
    let factor = exp(most - near_most);
    let near_total = groups_add4(vec4<f32>(total * factor), lanes).x; //~ alike: component
    workgroupBarrier();
    slice_gather(acc * factor, lid % near < lanes, lanes, lid); //~ surplus: comparison
    weighed[lid / near] = vec2<f32>(near_most, near_total);
    workgroupBarrier();
    let quad = min(lid, quads - 1u);
    let column = slice_column(quad, lanes);
    var all = LOWEST;
    for (var g = 0u; g < WG / near; g++) {
        all = max(all, weighed[g].x);
    }
    var sum = 0.0;
    var joined = vec4<f32>(0.0);
    for (var g = 0u; g < WG / near; g++) {
        let share = exp(weighed[g].x - all);
        sum += weighed[g].y * share;
        joined += gathered[column + g * near] * share;
    }
    decode_store(params.q_heads * params.head_dim, n * quads + quad, lid < quads, joined / sum, lid);
}
