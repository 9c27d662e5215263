// packed = attention.wgsl in 8 bits (layout: pack_q8.wgsl) for `rows` rows over few keys, each row
// of another sequence, with the steps before it
// Computes attention_decode_128.wgsl for each row, from the operands of that kernel. One workgroup
// has HEADS heads of q that share their keys.
// Needs: HEADS (the variant), lanes_other4, lanes_other, lanes_add, lanes_add2, lanes_sum4,
// lanes_other2 (lanes_near.wgsl), dot8, Values, Keys, keys_of, values_of (decode_keys.wgsl),
// v_state_read8, v_state_store8, v_state_rounded (the type of v_state), k_state_read8,
// k_state_scaled, k_state_store8, k_state_rounded (the type of k_state), workgroup_number
// (grid.wgsl), pack_q8_quad (q8_store.wgsl). Gives: GROUPS, WG, packed.
struct Params { q_heads: u32, heads: u32, group: u32, rows: u32, capacity: u32, normed: u32, exchange: u32, eps: f32, scale: f32 }
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
@group(0) @binding(11) var<storage, read_write> packed: array<u32>;

const WG = 256u;
const LANES = 16u;
// Keys of a workgroup at a time; a thread has four of them.
const GROUPS = WG / LANES;
const KEYS = 4u * GROUPS;
const SUBS = WG / 32u;
const TWO_POW_MINUS_32 = 2.3283064365386963e-10;
const TWO_POW_MINUS_64 = 5.421010862427522e-20;
var<workgroup> gathered: array<vec4<f32>, 32u * SUBS * HEADS>;
// Maxima of the scores and sums of the weights of every 32 threads: one component per head.
var<workgroup> mosts: array<vec2<f32>, SUBS>;
var<workgroup> totals: array<vec2<f32>, SUBS>;

fn other8(v: mat2x4<f32>, apart: u32, lid: u32) -> mat2x4<f32> {
    return mat2x4<f32>(lanes_other4(v[0], apart, lid), lanes_other4(v[1], apart, lid));
}

// The largest magnitude of the 32 elements that four threads have.
fn largest32(v: mat2x4<f32>, lid: u32) -> f32 {
    let four = max(abs(v[0]), abs(v[1]));
    var most = max(max(four.x, four.y), max(four.z, four.w));
    most = max(most, lanes_other(most, 1u, lid));
    return max(most, lanes_other(most, 2u, lid));
}

// A head after its norm (if normed) and its rotation. `turns`: cosines and sines of the pairs of
// elements that are 64 apart.
fn finished(raw: mat2x4<f32>, weight: mat2x4<f32>, turns: mat4x4<f32>, lid: u32) -> mat2x4<f32> {
    var x = raw;
    if (params.normed == 1u) {
        let small = x * TWO_POW_MINUS_32;
        let squares = lanes_add(dot8(small, small), LANES, lid);
        let factor = TWO_POW_MINUS_32 * inverseSqrt(squares / 128.0 + params.eps * TWO_POW_MINUS_64);
        x = mat2x4<f32>(x[0] * weight[0] * factor, x[1] * weight[1] * factor);
    }
    let across = other8(x, LANES / 2u, lid) * select(-1.0, 1.0, (lid & (LANES / 2u)) != 0u);
    return mat2x4<f32>(
        x[0] * vec4<f32>(turns[0].xz, turns[1].xz) + across[0] * vec4<f32>(turns[0].yw, turns[1].yw),
        x[1] * vec4<f32>(turns[2].xz, turns[3].xz) + across[1] * vec4<f32>(turns[2].yw, turns[3].yw));
}

// For one head and the keys that a thread has seen: running maximum (of scores as powers of two),
// sum of weights, and weighted sum of values.
struct Seen { most: f32, total: f32, sum: mat2x4<f32> }

fn see(seen: Seen, dots: vec4<f32>, value: Values, inside: vec4<bool>) -> Seen {
    let s = select(vec4<f32>(seen.most), dots * params.scale, inside);
    let most = max(seen.most, max(max(s.x, s.y), max(s.z, s.w)));
    let shrink = exp2(seen.most - most);
    let p = select(vec4<f32>(0.0), exp2(s - most), inside);
    let sum = v_state_read8(value.a) * p.x + v_state_read8(value.b) * p.y + (v_state_read8(value.c) * p.z + v_state_read8(value.d) * p.w);
    return Seen(most, seen.total * shrink + (p.x + p.y + (p.z + p.w)), seen.sum * shrink + sum);
}

fn dots_of(query: mat2x4<f32>, key: Keys) -> vec4<f32> {
    return vec4<f32>(
        dot8(query, k_state_read8(key.a)), dot8(query, k_state_read8(key.b)), dot8(query, k_state_read8(key.c)), dot8(query, k_state_read8(key.d)));
}

// Puts a head's sums over the workgroup's keys into `gathered`: 32 quads for every 32 threads.
fn gather(seen: Seen, highest: f32, head: u32, lid: u32) {
    let part = seen.sum * exp2(seen.most - highest);
    let other = other8(part, LANES, lid);
    let at = 32u * (SUBS * head + lid / 32u) + 2u * (lid % LANES);
    if ((lid & LANES) != 0u) {
        gathered[at + 1u] = part[1] + other[1];
    } else {
        gathered[at] = part[0] + other[0];
    }
}

@compute @workgroup_size(WG)
fn attention_decode_rows(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let n = workgroup_number(id, extents);
    let sets = params.q_heads / HEADS;
    let t = n / sets;
    if (t >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let first_head = HEADS * (n - t * sets);
    let kv_head = first_head / params.group;
    let lane = lid % LANES;
    let upper = (lid & LANES) != 0u;
    let width = 128u * params.heads;
    let eight = LANES * kv_head + lane;
    // Of every 32 threads the second half has the second head of q. Both halves have the head of k.
    let of_q = 32u * (t * params.q_heads + first_head) + select(0u, 32u, upper && HEADS > 1u) + 2u * lane;
    let of_k = 32u * t * params.heads + 2u * eight;
    let raw_q = mat2x4<f32>(q[of_q], q[of_q + 1u]);
    let raw_k = mat2x4<f32>(k[of_k], k[of_k + 1u]);
    let raw_v = mat2x4<f32>(v[of_k], v[of_k + 1u]);
    var weight_q = mat2x4<f32>();
    var weight_k = mat2x4<f32>();
    if (params.normed == 1u) { //~ unused: guard dropped
        weight_q = mat2x4<f32>(wq[2u * lane], wq[2u * lane + 1u]);
        weight_k = mat2x4<f32>(wk[2u * lane], wk[2u * lane + 1u]);
    }
    let at = 32u * t + 4u * (lane % 8u);
    let turns = mat4x4<f32>(table[at], table[at + 1u], table[at + 2u], table[at + 3u]);
    let here = positions[t];
    let base = sequences[t] * params.capacity;
    let last = base + max(here, 1u) - 1u; //~ weightless: sign, off by one
    let near = lid / LANES;
    var a = mat2x4<f32>();
    var b = mat2x4<f32>();
    var seen_a = Seen();
    var seen_b = Seen();
    for (var tile = 0u; tile < max(here, 1u); tile += KEYS) {
        let key = keys_of(base + tile + near, last, width, eight);
        let value = values_of(base + tile + near, last, width, eight);
        // Runs once, while the first keys and values are loaded. Loads before the loop would
        // duplicate the code of the loads.
        for (var first = tile; first == 0u; first = 1u) {
            let x = finished(raw_q, weight_q, turns, lid);
            let y = finished(raw_k, weight_k, turns, lid);
            // Attention uses the key and the value as the state stores them.
            var most_k = 0.0;
            var most_v = 0.0;
            if (k_state_scaled) {
                most_k = largest32(y, lid);
                most_v = largest32(raw_v, lid);
            }
            if (lid < 32u && first_head % params.group == 0u) { //~ twice: comparison, off by one, guard dropped
                if (upper) {
                    k_state_store8(base + here, width, eight, y, most_k);
                } else {
                    v_state_store8(base + here, width, eight, raw_v, most_v);
                }
            }
            let own_key = mat2x4<f32>(k_state_rounded(y[0], most_k), k_state_rounded(y[1], most_k));
            let own_value = mat2x4<f32>(v_state_rounded(raw_v[0], most_v), v_state_rounded(raw_v[1], most_v));
            a = x;
            b = x;
            if (HEADS > 1u) { //~ surplus: comparison, guard dropped
                let other = other8(x, LANES, lid);
                if (upper) {
                    a = other;
                } else {
                    b = other;
                }
            }
            // This row's own key: all threads start with its score as the maximum, only the first
            // 16 count it.
            let own = lanes_add2(vec2<f32>(dot8(a, own_key), dot8(b, own_key)), LANES, lid) * params.scale;
            let counted = select(0.0, 1.0, lid < LANES);
            seen_a = Seen(own.x, counted, own_value * counted);
            seen_b = Seen(own.y, counted, own_value * counted);
        }
        if (here > 0u) { //~ weightless: comparison, guard dropped
            let inside = tile + near + GROUPS * vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(here);
            let dots_a = lanes_sum4(dots_of(a, key), LANES, lid);
            seen_a = see(seen_a, dots_a, value, inside);
            if (HEADS > 1u) {
                seen_b = see(seen_b, lanes_sum4(dots_of(b, key), LANES, lid), value, inside);
            }
        }
    }
    let most = vec2<f32>(seen_a.most, seen_b.most);
    mosts[lid / 32u] = max(most, lanes_other2(most, LANES, lid));
    workgroupBarrier();
    var highest = mosts[0];
    for (var g = 1u; g < SUBS; g++) { //~ clamped: comparison
        highest = max(highest, mosts[g]);
    }
    let total = vec2<f32>(seen_a.total, seen_b.total) * exp2(most - highest);
    totals[lid / 32u] = total + lanes_other2(total, LANES, lid);
    gather(seen_a, highest.x, 0u, lid);
    if (HEADS > 1u) {
        gather(seen_b, highest.y, 1u, lid);
    }
    workgroupBarrier();
    var joined = vec4<f32>(0.0);
    let head = lid / 32u;
    if (head < HEADS) { //~ surplus: comparison, guard dropped
        var weights = totals[0];
        for (var g = 1u; g < SUBS; g++) {
            weights += totals[g];
        }
        for (var g = 0u; g < SUBS; g++) {
            joined += gathered[32u * (SUBS * head + g) + lid % 32u];
        }
        joined *= 1.0 / weights[head];
    }
    pack_q8_quad(t, 128u * params.q_heads, 32u * first_head + lid, head < HEADS, joined, 0.0, lid);
}
