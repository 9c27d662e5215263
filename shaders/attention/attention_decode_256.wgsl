// packed = attention.wgsl in 8 bits (decode_q8.wgsl) or as f32 (decode_f32.wgsl) for one row over
// few keys and heads of 256 or 512 that rotate as a whole, with the steps before it: norms (bits of
// `norms`: 1 q, 2 k, 4 v), rotations, and with append this row's key and value, which then take
// part in the attention
// q [q_heads, HEAD], k, v [heads, HEAD] f32; the other operands are as in norm_rope_heads.wgsl.
// Without append the states hold this row already. One workgroup for 64 elements of a head of q.
// For a score 32 threads share a key, each with a slice of it (head_256.wgsl, head_512.wgsl). For
// the values eight threads share the 64 elements of a key's value. The first 32 threads finish q,
// the next 32 k, the next 32 v.
// Needs: HEAD, StoredKey, Slice, slice_dot, slice_times, slice_turned, slice_most, key_store,
// key_rounded, value_store, value_rounded, slice_leave, slice_ones, slice_of_q, slice_of_wq,
// slice_of_k, slice_of_wk, slice_of_v, slice_turns_at, key_stored, slice_of_gathered, key_open
// (slot keys), WG (the variant), Place, row_of (decode_range.wgsl), lanes_add, lanes_each4,
// lanes_other, lanes_other4 (lanes_near.wgsl), k_state_scaled (the type of k_state),
// workgroup_number (grid.wgsl), v_state_Stored, v_state_fetch8, v_state_read8 (the type of
// v_state), decode_store (slot result). Gives: params.capacity, k, v, wq, wk, gathered, q. Bindings
// of pieces: packed (slot result).
struct Params { q_heads: u32, heads: u32, group: u32, capacity: u32, window: u32, append: u32, norms: u32, exchange: u32, kv_heads_per_head: f32, eps: f32, scale: f32 }
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

const LANES = 32u;
const QUADS = HEAD / 4u;
// PARTS: workgroups per head. PART_QUADS: quads of the values per workgroup.
const PARTS = HEAD / 64u;
const PART_QUADS = 16u;
const SUBS = WG / LANES;
// Keys of a workgroup at a time; every 32 threads have four of them.
const KEYS = 4u * SUBS;
const TWO_POW_MINUS_32 = 2.3283064365386963e-10;
const TWO_POW_MINUS_64 = 5.421010862427522e-20;
const LOWEST = -3.0e38;
// Finished heads of q, k and v; later the sums of values of every 32 threads.
var<workgroup> gathered: array<vec4<f32>, max(3u * QUADS, PART_QUADS * SUBS)>;
// Maximum of the scores and sum of the weights of every 32 threads.
var<workgroup> mosts: array<vec4<f32>, SUBS / 4u>;
var<workgroup> totals: array<vec4<f32>, SUBS / 4u>;

struct Keys { a: StoredKey, b: StoredKey, c: StoredKey, d: StoredKey }

// Finishes the head of every 32 threads and leaves it in `gathered`. If `stores`, k and v also go
// to row `row` of the states.
fn finish_heads(raw: Slice, weight: Slice, turns: mat4x4<f32>, stores: bool, row: u32, p: Place, lid: u32) {
    let sub = lid / LANES;
    let lane = lid % LANES;
    let small = raw * TWO_POW_MINUS_32;
    let squares = lanes_add(slice_dot(small, small), LANES, lid);
    let factor = TWO_POW_MINUS_32 * inverseSqrt(squares / f32(HEAD) + params.eps * TWO_POW_MINUS_64);
    var x = slice_times(raw, weight) * select(1.0, factor, ((params.norms >> min(sub, 3u)) & 1u) == 1u); //~ never: off by one
    let turned = slice_turned(x, turns, lane, lid);
    if (sub < 2u) {
        x = turned;
    }
    // Attention uses the key and the value as the state stores them.
    var most = vec2<f32>(0.0);
    if (k_state_scaled) {
        most = slice_most(x, lid);
    }
    if (sub == 1u) {
        if (stores) {
            key_store(row, p.width, p.eight, x, most);
        }
        x = key_rounded(x, most);
    } else if (sub == 2u) {
        if (stores) {
            value_store(row, p.width, p.eight, x, most);
        }
        x = value_rounded(x, most);
    }
    if (sub < 3u) {
        slice_leave(x, QUADS * sub, lane);
    }
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn attention_decode_256(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let n = number / PARTS;
    let part = number % PARTS;
    if (n >= params.q_heads) {
        return;
    }
    // n / group, without an integer division, which is slow.
    let kv_head = u32((f32(n) + 0.5) * params.kv_heads_per_head);
    let lane = lid % LANES;
    let sub = lid / LANES;
    let quarter = lane / 8u;
    let appends = params.append == 1u;
    var raw = Slice();
    var weight = slice_ones();
    if (sub == 0u) {
        raw = slice_of_q(QUADS * n, lane, LANES);
        if ((params.norms & 1u) == 1u) {
            weight = slice_of_wq(lane);
        }
    } else if (sub == 1u && appends) {
        raw = slice_of_k(QUADS * kv_head, lane);
        if ((params.norms & 2u) == 2u) {
            weight = slice_of_wk(lane);
        }
    } else if (sub == 2u && appends) { //~ surplus: guard dropped
        raw = slice_of_v(QUADS * kv_head, lane);
    }
    let at = slice_turns_at(lane);
    let turns = mat4x4<f32>(table[at], table[at + 1u], table[at + 2u], table[at + 3u]);
    let here = positions[0];
    // back: earlier keys that this row sees. keys: the keys that it sees and the states hold.
    let back = select(here, min(here, params.window - 1u), params.window > 0u); //~ meet: comparison; seen: sign
    let keys = back + 1u - params.append;
    let slot = here % params.capacity;
    let first = slot + select(0u, params.capacity, slot < back) - back; //~ meet: comparison
    let of_value = HEAD / 8u * kv_head + 8u * part + lane % 8u;
    //~ weightless: sign, product, minimum, off by one
    let p = Place(sequences[0] * params.capacity, first, max(keys, 1u) - 1u, HEAD * params.heads, HEAD / 8u * kv_head + lane);
    var query = Slice();
    var most = LOWEST;
    var total = 0.0;
    var sum = mat2x4<f32>();
    var key: Keys;
    var value: v_state_Stored;
    // Keys and values loaded in one turn are used in the next one, while the next ones are loaded.
    for (var tile = 0u; tile < keys + KEYS; tile += KEYS) {
        // Each quarter of 32 threads has the score of one key, and its value.
        let mine = tile + sub + SUBS * quarter;
        let rows = vec4<u32>(row_of(p, tile + sub), row_of(p, tile + sub + SUBS), row_of(p, tile + sub + 2u * SUBS), row_of(p, tile + sub + 3u * SUBS));
        let next_key = Keys(
            key_stored(rows.x, p.width, p.eight, LANES), key_stored(rows.y, p.width, p.eight, LANES),
            key_stored(rows.z, p.width, p.eight, LANES), key_stored(rows.w, p.width, p.eight, LANES));
        let next_value = v_state_fetch8(row_of(p, mine), p.width, of_value);
        // Runs once, while the first keys are loaded. Loads before the loop would duplicate the
        // code of the loads.
        for (var start = tile; start == 0u; start = 1u) {
            //~ free: off by one
            finish_heads(raw, weight, turns, appends && part == 0u && n == kv_head * params.group, p.base + slot, p, lid);
            query = slice_of_gathered(0u, lane, LANES) * params.scale;
            if (appends) {
                // All threads start with the score of this row's own key as the maximum; only the
                // first eight count it.
                most = lanes_add(slice_dot(query, slice_of_gathered(QUADS, lane, LANES)), LANES, lid);
                total = select(0.0, 1.0, lid < 8u);
                let at_value = 2u * QUADS + PART_QUADS * part + 2u * (lane % 8u); //~ free: off by one
                sum = mat2x4<f32>(gathered[at_value], gathered[at_value + 1u]) * total;
            }
        }
        if (tile > 0u) { //~ empty: comparison, off by one, guard dropped
            let inside = mine - KEYS < keys;
            let shares = vec4<f32>(
                slice_dot(query, key_open(key.a)), slice_dot(query, key_open(key.b)), slice_dot(query, key_open(key.c)), slice_dot(query, key_open(key.d)));
            let s = select(most, lanes_each4(shares, LANES, lid), inside);
            let pair = max(s, lanes_other(s, 8u, lid)); //~ alike: off by one
            let new_most = max(most, max(pair, lanes_other(pair, 16u, lid))); //~ alike: off by one
            let shrink = exp2(most - new_most);
            let weighed = select(0.0, exp2(s - new_most), inside);
            most = new_most;
            total = total * shrink + weighed;
            sum = sum * shrink + v_state_read8(value) * weighed;
        }
        key = next_key;
        value = next_value;
    }
    mosts[sub / 4u][sub % 4u] = most;
    workgroupBarrier();
    var highest = mosts[0];
    for (var g = 1u; g < SUBS / 4u; g++) { //~ clamped: comparison
        highest = max(highest, mosts[g]);
    }
    let factor = exp2(most - max(max(highest.x, highest.y), max(highest.z, highest.w)));
    total += lanes_other(total, 8u, lid); //~ alike: off by one
    total += lanes_other(total, 16u, lid); //~ alike: off by one
    sum += mat2x4<f32>(lanes_other4(sum[0], 8u, lid), lanes_other4(sum[1], 8u, lid));
    sum += mat2x4<f32>(lanes_other4(sum[0], 16u, lid), lanes_other4(sum[1], 16u, lid));
    if (quarter == 0u) { //~ race: guard dropped
        gathered[PART_QUADS * sub + 2u * lane] = sum[0] * factor;
        gathered[PART_QUADS * sub + 2u * lane + 1u] = sum[1] * factor;
    }
    totals[sub / 4u][sub % 4u] = total * factor;
    workgroupBarrier();
    var joined = vec4<f32>(0.0);
    if (lid < PART_QUADS) { //~ surplus: comparison, guard dropped
        var weights = totals[0];
        for (var g = 1u; g < SUBS / 4u; g++) {
            weights += totals[g];
        }
        for (var g = 0u; g < SUBS; g++) {
            joined += gathered[PART_QUADS * g + lid];
        }
        joined *= 1.0 / dot(weights, vec4<f32>(1.0));
    }
    decode_store(HEAD * params.q_heads, PART_QUADS * number + lid, lid < PART_QUADS, joined, lid);
}
