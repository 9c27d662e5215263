// packed = attention.wgsl in 8 bits (decode_q8.wgsl) or as f32 (decode_f32.wgsl) for one row over
// few keys and heads of 128, with the steps before it: norms of q and k (if normed), their rotation
// as a whole, and the append of this row's key and value, which is one of the keys
// q [q_heads, 128], k, v [heads, 128] f32; the other operands are as in norm_rope_heads.wgsl. One
// workgroup per head of q, 16 threads per key. Every 32 threads finish the heads for themselves
// while their first keys and values are loaded. So they do not wait for other threads before the
// join.
// Needs: lanes_other4, lanes_other, lanes_sum4, lanes_add (lanes_near.wgsl), Keys, Values, dot8,
// keys_of, values_of (decode_keys.wgsl), k_state_read8, k_state_scaled, k_state_store8,
// k_state_rounded (the type of k_state), v_state_read8, v_state_rounded, v_state_store8 (the type
// of v_state), workgroup_number (grid.wgsl), decode_store (slot result). Gives: GROUPS, WG.
// Bindings of pieces: packed (slot result).
struct Params { q_heads: u32, heads: u32, group: u32, rows_apart: u32, normed: u32, exchange: u32, kv_heads_per_head: f32, eps: f32, scale: f32 }
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

const WG = 256u;
const LANES = 16u;
// Keys of a workgroup at a time; a thread has four of them.
const GROUPS = WG / LANES;
const KEYS = 4u * GROUPS;
const SUBS = WG / 32u;
const TWO_POW_MINUS_32 = 2.3283064365386963e-10;
const TWO_POW_MINUS_64 = 5.421010862427522e-20;
var<workgroup> gathered: array<vec4<f32>, 32u * SUBS>;
// Maximum of the scores and sum of the weights of every 32 threads.
var<workgroup> mosts: array<vec4<f32>, SUBS / 4u>;
var<workgroup> totals: array<vec4<f32>, SUBS / 4u>;

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

// For the keys that a thread has seen: running maximum (of scores as powers of two), sum of
// weights, and weighted sum of values.
struct Seen { most: f32, total: f32, sum: mat2x4<f32> }

fn see(seen: Seen, query: mat2x4<f32>, key: Keys, value: Values, near: u32, end: u32, lid: u32) -> Seen {
    let inside = near + GROUPS * vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(end);
    let dots = vec4<f32>(
        dot8(query, k_state_read8(key.a)), dot8(query, k_state_read8(key.b)), dot8(query, k_state_read8(key.c)), dot8(query, k_state_read8(key.d)));
    let s = select(vec4<f32>(seen.most), lanes_sum4(dots, LANES, lid) * params.scale, inside);
    let most = max(seen.most, max(max(s.x, s.y), max(s.z, s.w)));
    let shrink = exp2(seen.most - most);
    let p = select(vec4<f32>(0.0), exp2(s - most), inside);
    let sum = v_state_read8(value.a) * p.x + v_state_read8(value.b) * p.y + (v_state_read8(value.c) * p.z + v_state_read8(value.d) * p.w);
    return Seen(most, seen.total * shrink + (p.x + p.y + (p.z + p.w)), seen.sum * shrink + sum);
}

@compute @workgroup_size(WG)
fn attention_decode_128(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let n = workgroup_number(id, extents);
    if (n >= params.q_heads) {
        return;
    }
    // n / group, without an integer division, which is slow.
    let kv_head = u32((f32(n) + 0.5) * params.kv_heads_per_head);
    let lane = lid % LANES;
    let sub = lid / 32u;
    let width = 128u * params.heads;
    let eight = LANES * kv_head + lane;
    // Of every 32 threads the first half has the head of q, the second half the head of k.
    let upper = (lid & LANES) != 0u;
    let of_q = 2u * (LANES * n + lane);
    let of_k = 2u * eight;
    var x = mat2x4<f32>();
    var weight = mat2x4<f32>();
    if (upper) {
        x = mat2x4<f32>(k[of_k], k[of_k + 1u]);
    } else {
        x = mat2x4<f32>(q[of_q], q[of_q + 1u]);
    }
    if (params.normed == 1u) { //~ unused: guard dropped
        if (upper) {
            weight = mat2x4<f32>(wk[2u * lane], wk[2u * lane + 1u]);
        } else {
            weight = mat2x4<f32>(wq[2u * lane], wq[2u * lane + 1u]);
        }
    }
    let raw_value = mat2x4<f32>(v[of_k], v[of_k + 1u]);
    // Cosines and sines of the pairs of elements that are 64 apart.
    let at = 4u * (lane % 8u);
    let turns = mat4x4<f32>(table[at], table[at + 1u], table[at + 2u], table[at + 3u]);
    let here = positions[0];
    let base = sequences[0] * params.rows_apart;
    let last = base + max(here, 1u) - 1u; //~ dropped: sign, off by one
    let near = lid / LANES;
    var query = mat2x4<f32>();
    var seen = Seen();
    for (var tile = 0u; tile < max(here, 1u); tile += KEYS) {
        let key = keys_of(base + tile + near, last, width, eight);
        let value = values_of(base + tile + near, last, width, eight);
        // Runs once, while the first keys and values are loaded. Loads before the loop would
        // duplicate the code of the loads.
        for (var first = tile; first == 0u; first = 1u) {
            if (params.normed == 1u) {
                let small = x * TWO_POW_MINUS_32;
                let squares = lanes_add(dot8(small, small), LANES, lid);
                let factor = TWO_POW_MINUS_32 * inverseSqrt(squares / 128.0 + params.eps * TWO_POW_MINUS_64);
                x = mat2x4<f32>(x[0] * weight[0] * factor, x[1] * weight[1] * factor);
            }
            let across = other8(x, LANES / 2u, lid) * select(-1.0, 1.0, lane >= LANES / 2u);
            x = mat2x4<f32>(
                x[0] * vec4<f32>(turns[0].xz, turns[1].xz) + across[0] * vec4<f32>(turns[0].yw, turns[1].yw),
                x[1] * vec4<f32>(turns[2].xz, turns[3].xz) + across[1] * vec4<f32>(turns[2].yw, turns[3].yw));
            // Attention uses the key and the value as the state stores them.
            var most_k = 0.0;
            var most_v = 0.0;
            if (k_state_scaled) {
                most_k = largest32(x, lid);
                most_v = largest32(raw_value, lid);
            }
            let own_value = mat2x4<f32>(v_state_rounded(raw_value[0], most_v), v_state_rounded(raw_value[1], most_v));
            if (sub == 0u && n == kv_head * params.group) { //~ twice: off by one, guard dropped
                if (upper) {
                    k_state_store8(base + here, width, eight, x, most_k);
                } else {
                    v_state_store8(base + here, width, eight, raw_value, most_v);
                }
            }
            if (upper) {
                x = mat2x4<f32>(k_state_rounded(x[0], most_k), k_state_rounded(x[1], most_k));
            }
            let partner = other8(x, LANES, lid);
            query = x;
            if (upper) {
                query = partner;
            }
            // This row's own key: all threads start with its score as the maximum, only the first
            // 16 count it.
            let own = lanes_add(dot8(x, partner), LANES, lid) * params.scale;
            seen = Seen(own, 0.0, mat2x4<f32>());
            if (lid < LANES) {
                seen = Seen(own, 1.0, own_value);
            }
        }
        if (here > 0u) { //~ weightless: comparison, guard dropped
            seen = see(seen, query, key, value, tile + near, here, lid);
        }
    }
    let most = max(seen.most, lanes_other(seen.most, LANES, lid));
    mosts[sub / 4u][sub % 4u] = most; //~ free: off by one
    workgroupBarrier();
    var highest = mosts[0];
    for (var g = 1u; g < SUBS / 4u; g++) { //~ clamped: comparison
        highest = max(highest, mosts[g]);
    }
    let factor = exp2(seen.most - max(max(highest.x, highest.y), max(highest.z, highest.w)));
    let total = seen.total * factor;
    let both = total + lanes_other(total, LANES, lid);
    let part = seen.sum * factor;
    let other = other8(part, LANES, lid);
    if (upper) {
        gathered[32u * sub + 2u * lane + 1u] = part[1] + other[1];
    } else {
        gathered[32u * sub + 2u * lane] = part[0] + other[0];
        totals[sub / 4u][sub % 4u] = both; //~ free: off by one
    }
    workgroupBarrier();
    var joined = vec4<f32>(0.0);
    if (lid < 32u) { //~ surplus: comparison, off by one, guard dropped
        var weights = totals[0];
        for (var g = 1u; g < SUBS / 4u; g++) {
            weights += totals[g];
        }
        for (var g = 0u; g < SUBS; g++) {
            joined += gathered[32u * g + lid];
        }
        joined *= 1.0 / dot(weights, vec4<f32>(1.0));
    }
    decode_store(128u * params.q_heads, 32u * n + lid, lid < 32u, joined, lid);
}
