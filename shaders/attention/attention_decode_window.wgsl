// partial = (sum 2^(s - m) v, m = max s, sum 2^(s - m)) with the scores s = log2(e) q k, over every
// 64 of the keys of attention_decode_256.wgsl, with the steps before it; zeros and LOWEST where
// there are no keys
// partial [q_heads, splits, HEAD + 4] f32; the other operands are as in attention_decode_256.wgsl.
// One workgroup for a head and a part. 32 threads share a key, each with a slice of it and of its
// value. Every 32 threads finish q. In the first part the first 32 threads also finish the row's
// own key and all others its value; only the value of the second 32 threads counts.
// Needs: HEAD, slice_ones, slice_of_wq, slice_turns_at, slice_of_k, slice_of_wk, slice_of_v,
// slice_times, slice_turned, slice_most, key_store, key_rounded, value_store, value_rounded
// (head_256.wgsl), Slice, slice_dot, key_stored, slice_of_q, key_open (eights_1.wgsl), lanes_add,
// lanes_each4, lanes_other, lanes_other2 (lanes_near.wgsl), workgroup_number (grid.wgsl), Place,
// row_of (decode_range.wgsl), v_state_fetch8, v_state_read8 (the type of v_state), k_state_scaled
// (the type of k_state). Gives: params.capacity, k, v, wq, wk, gathered, q, WG.
struct Params { q_heads: u32, heads: u32, group: u32, capacity: u32, window: u32, splits: u32, append: u32, norms: u32, exchange: u32, kv_heads_per_head: f32, eps: f32, scale: f32 }
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
@group(0) @binding(11) var<storage, read_write> partial: array<f32>;

// These threads, lanes and rows are those of attention_decode_256.wgsl with HEAD = 256.
const WG = 512u;
const LANES = 32u;
const QUADS = HEAD / 4u;
const SUBS = WG / LANES;
// Keys of a workgroup; every 32 threads have four of them.
const KEYS = 4u * SUBS;
const TWO_POW_MINUS_32 = 2.3283064365386963e-10;
const TWO_POW_MINUS_64 = 5.421010862427522e-20;
const LOWEST = -3.0e38;
// Sums of values of every 32 threads.
var<workgroup> gathered: array<vec4<f32>, QUADS * SUBS>;
// Maximum of the scores and sum of the weights of every 32 threads.
var<workgroup> mosts: array<vec4<f32>, SUBS / 4u>;
var<workgroup> totals: array<vec4<f32>, SUBS / 4u>;
// Score of this row's own key.
var<workgroup> own_score: f32;

// 2^-64 times the mean square that a norm divides by, from a head scaled by 2^-32.
fn small_mean(small: Slice, lid: u32) -> f32 {
    return lanes_add(slice_dot(small, small), LANES, lid) / f32(HEAD) + params.eps * TWO_POW_MINUS_64;
}

@compute @workgroup_size(WG)
fn attention_decode_window(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let n = number / params.splits;
    let part = number % params.splits;
    if (n >= params.q_heads) {
        return;
    }
    // n / group, without an integer division, which is slow.
    let kv_head = u32((f32(n) + 0.5) * params.kv_heads_per_head);
    let lane = lid % LANES;
    let sub = lid / LANES;
    let quarter = lane / 8u;
    let here = positions[0];
    // back: earlier keys that this row sees. keys: the keys that it sees and the states hold.
    let back = select(here, min(here, params.window - 1u), params.window > 0u); //~ meet: comparison, off by one; seen: sign
    let keys = back + 1u - params.append;
    let slot = here % params.capacity;
    let first = slot + select(0u, params.capacity, slot < back) - back; //~ meet: comparison
    //~ weightless: sign, off by one
    let p = Place(sequences[0] * params.capacity, first, max(keys, 1u) - 1u, HEAD * params.heads, HEAD / 8u * kv_head + lane);
    let start = KEYS * part + sub;
    let rows = vec4<u32>(row_of(p, start), row_of(p, start + SUBS), row_of(p, start + 2u * SUBS), row_of(p, start + 3u * SUBS));
    let key_a = key_stored(rows.x, p.width, p.eight, LANES);
    let key_b = key_stored(rows.y, p.width, p.eight, LANES);
    let key_c = key_stored(rows.z, p.width, p.eight, LANES);
    let key_d = key_stored(rows.w, p.width, p.eight, LANES);
    let value_a = v_state_fetch8(rows.x, p.width, p.eight);
    let value_b = v_state_fetch8(rows.y, p.width, p.eight);
    let value_c = v_state_fetch8(rows.z, p.width, p.eight);
    let value_d = v_state_fetch8(rows.w, p.width, p.eight);
    let raw = slice_of_q(QUADS * n, lane, LANES);
    var weight = slice_ones();
    if ((params.norms & 1u) == 1u) { //~ unused: guard dropped
        weight = slice_of_wq(lane);
    }
    let at = slice_turns_at(lane);
    let turns = mat4x4<f32>(table[at], table[at + 1u], table[at + 2u], table[at + 3u]);
    // Whether this workgroup finishes and counts this row's own key and value.
    let own = params.append == 1u && part == 0u; //~ free: off by one
    var x = Slice();
    var of_x = slice_ones();
    if (own && sub == 0u) {
        x = slice_of_k(QUADS * kv_head, lane);
        if ((params.norms & 2u) == 2u) {
            of_x = slice_of_wk(lane);
        }
    } else if (own) { //~ surplus: guard dropped
        x = slice_of_v(QUADS * kv_head, lane);
    }
    // The factor of q's norm multiplies the scores instead of q.
    var query = raw;
    var scale = params.scale;
    if ((params.norms & 1u) == 1u) {
        let small = raw * TWO_POW_MINUS_32;
        query = slice_times(small, weight);
        scale *= inverseSqrt(small_mean(small, lid));
    }
    query = slice_turned(query, turns, lane, lid);
    if (own) {
        let factor = TWO_POW_MINUS_32 * inverseSqrt(small_mean(x * TWO_POW_MINUS_32, lid));
        x = slice_times(x, of_x) * select(1.0, factor, (params.norms & select(4u, 2u, sub == 0u)) != 0u);
        let turned = slice_turned(x, turns, lane, lid);
        if (sub == 0u) {
            x = turned;
        }
        // Attention uses the key and the value as the state stores them.
        var most = vec2<f32>(0.0);
        if (k_state_scaled) {
            most = slice_most(x, lid);
        }
        let stores = n == kv_head * params.group;
        if (sub == 0u) {
            if (stores) { //~ twice: guard dropped
                key_store(p.base + slot, p.width, p.eight, x, most);
            }
            x = key_rounded(x, most);
        } else {
            if (stores && sub == 1u) { //~ twice: off by one, guard dropped
                value_store(p.base + slot, p.width, p.eight, x, most);
            }
            x = value_rounded(x, most);
        }
        let score = lanes_add(slice_dot(query, x), LANES, lid) * scale;
        if (lid == 0u) { //~ seen: guard dropped
            own_score = score;
        }
    }
    // Each quarter of 32 threads has the score of one key.
    let inside = start + SUBS * quarter < keys;
    let shares = vec4<f32>(slice_dot(query, key_open(key_a)), slice_dot(query, key_open(key_b)), slice_dot(query, key_open(key_c)), slice_dot(query, key_open(key_d)));
    let s = select(LOWEST, lanes_each4(shares, LANES, lid) * scale, inside);
    let pair = max(s, lanes_other(s, 8u, lid)); //~ alike: off by one
    let most = max(pair, lanes_other(pair, 16u, lid)); //~ alike: off by one
    let mine = select(0.0, exp2(s - most), inside);
    let beside = lanes_other(mine, 8u, lid); //~ alike: off by one
    let two = select(vec2<f32>(mine, beside), vec2<f32>(beside, mine), (quarter & 1u) == 1u);
    let others = lanes_other2(two, 16u, lid); //~ alike: off by one
    let weights = select(vec4<f32>(two, others), vec4<f32>(others, two), quarter >= 2u);
    var sum = v_state_read8(value_a) * weights.x + v_state_read8(value_b) * weights.y;
    sum += v_state_read8(value_c) * weights.z + v_state_read8(value_d) * weights.w;
    if (lane == 0u) {
        mosts[sub / 4u][sub % 4u] = most;
    }
    workgroupBarrier();
    var four = mosts[0];
    for (var g = 1u; g < SUBS / 4u; g++) { //~ clamped: comparison
        four = max(four, mosts[g]);
    }
    var highest = max(max(four.x, four.y), max(four.z, four.w));
    if (own) { //~ cancels: guard dropped
        highest = max(highest, own_score);
    }
    let factor = exp2(most - highest);
    sum *= factor;
    var total = dot(weights, vec4<f32>(1.0)) * factor;
    if (own && sub == 1u) { //~ twice: off by one
        let of_own = exp2(own_score - highest);
        sum += x * of_own;
        total += of_own;
    }
    gathered[QUADS * sub + 2u * lane] = sum[0];
    gathered[QUADS * sub + 2u * lane + 1u] = sum[1];
    if (lane == 0u) {
        totals[sub / 4u][sub % 4u] = total;
    }
    workgroupBarrier();
    let place = (HEAD + 4u) * number;
    for (var e = lid; e < HEAD; e += WG) { //~ later: comparison
        var joined = 0.0;
        for (var g = 0u; g < SUBS; g++) {
            joined += gathered[QUADS * g + e / 4u][e % 4u];
        }
        partial[place + e] = joined;
    }
    if (lid == WG - 1u) { //~ twice: off by one, guard dropped
        var all = totals[0];
        for (var g = 1u; g < SUBS / 4u; g++) {
            all += totals[g];
        }
        partial[place + HEAD] = highest;
        partial[place + HEAD + 1u] = dot(all, vec4<f32>(1.0));
    }
}
