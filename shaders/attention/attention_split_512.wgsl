// partial as in attention_split.wgsl, with the same operands, for one row and heads of 512
// One workgroup for HEADS heads that share their keys and for one part, up to TILE keys at a time.
// Scores come first: 32 lanes share a key, each with a slice of every head (eights_2.wgsl). Weights
// follow: four threads share a key. Values are last: eight lanes have 64 elements of every eighth
// key.
// Needs: Slice, key_open, key_stored, slice_dot, slice_of_q (eights_2.wgsl), v_state_Stored,
// v_state_fetch8, v_state_read8 (the type of v_state), lanes_other4, lanes_other (lanes_near.wgsl),
// workgroup_number (grid.wgsl), attention_part (attention_part.wgsl), sixteen_slot, sixteen_any,
// sixteen_add, sixteen_max (sixteen.wgsl). Gives: q, gathered, WG.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, exchange: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> partial: array<vec4<f32>>;

const WG = 512u;
// Heads that share their keys.
const HEADS = 4u;
const LANES = 32u;
const SUBS = WG / LANES;
// BANDS: keys whose values are added at once. HALF: the threads that have the first half of the
// bands.
const BANDS = WG / 64u;
const HALF = WG / 2u;
const TILE = 512u;
const LOWEST = -3.0e38;
// Scores, then weights, of HEADS heads for each key of a tile; at the end the sums of values of the
// second half of the threads.
var<workgroup> gathered: array<vec4<f32>, TILE>;
// For every head and every 32 threads: maximum of the scores, and sum of the weights.
var<workgroup> mosts: array<vec4<f32>, SUBS>;
var<workgroup> totals: array<vec4<f32>, SUBS>;
// Factors of every head's sums where a tile raises its maximum.
var<workgroup> shrinks: vec4<f32>;

// Where the keys of a part are.
struct Place { base: u32, turns: u32, ring_end: u32, last: u32, width: u32 }

fn row_of(p: Place, key: u32) -> u32 {
    let near = min(key, p.last);
    return p.base + near - select(p.turns, p.ring_end, near >= p.ring_end);
}

fn key_at(p: Place, key: u32, eight: u32) -> Slice {
    return key_open(key_stored(row_of(p, key), p.width, eight, LANES));
}

fn value_at(p: Place, key: u32, eight: u32) -> v_state_Stored {
    return v_state_fetch8(row_of(p, key), p.width, eight);
}

// Eight elements of four values that are BANDS keys apart.
struct Values { a: v_state_Stored, b: v_state_Stored, c: v_state_Stored, d: v_state_Stored }

fn values_at(p: Place, key: u32, eight: u32) -> Values {
    return Values(value_at(p, key, eight), value_at(p, key + BANDS, eight), value_at(p, key + 2u * BANDS, eight), value_at(p, key + 3u * BANDS, eight));
}

// Each head is a member: arrays that loops index would not stay in registers.
struct Heads { a: Slice, b: Slice, c: Slice, d: Slice }

// This thread's shares of the scores of a key.
fn shares(q: Heads, key: Slice) -> vec4<f32> {
    return vec4<f32>(slice_dot(q.a, key), slice_dot(q.b, key), slice_dot(q.c, key), slice_dot(q.d, key));
}

fn capped(s: f32) -> f32 {
    if (params.softcap > 0.0) {
        // Clamped: some drivers return NaN from tanh of large arguments. tanh(15) rounds to 1.
        return params.softcap * tanh(clamp(s / params.softcap, -15.0, 15.0));
    }
    return s;
}

// Eight elements of the sums of every head.
struct Sums { a: mat2x4<f32>, b: mat2x4<f32>, c: mat2x4<f32>, d: mat2x4<f32> }

fn scaled(s: Sums, by: vec4<f32>) -> Sums {
    return Sums(s.a * by.x, s.b * by.y, s.c * by.z, s.d * by.w);
}

fn added(s: Sums, stored: v_state_Stored, weight: vec4<f32>) -> Sums {
    let value = v_state_read8(stored);
    return Sums(s.a + value * weight.x, s.b + value * weight.y, s.c + value * weight.z, s.d + value * weight.w);
}

// The sum of `low` (of `high` if `upper`) in this thread and in the thread `apart` from it. The
// other thread gets the sum of the other value.
fn halved(low: vec4<f32>, high: vec4<f32>, upper: bool, apart: u32, lid: u32) -> vec4<f32> {
    return select(low, high, upper) + lanes_other4(select(high, low, upper), apart, lid);
}

fn highest_of(head: u32) -> f32 {
    var most = mosts[SUBS / 4u * head];
    for (var g = 1u; g < SUBS / 4u; g++) {
        most = max(most, mosts[SUBS / 4u * head + g]);
    }
    return max(max(most.x, most.y), max(most.z, most.w));
}

fn total_of(head: u32) -> f32 {
    var sum = totals[SUBS / 4u * head];
    for (var g = 1u; g < SUBS / 4u; g++) {
        sum += totals[SUBS / 4u * head + g];
    }
    return dot(sum, vec4<f32>(1.0));
}

@compute @workgroup_size(WG)
fn attention_split_512(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let sets = params.heads / HEADS; //~ never: product
    if (number >= sets * params.splits) {
        return;
    }
    let split = number % params.splits;
    let share = number / params.splits;
    let part = attention_part(ends[0] + params.causal, positions[0] + 1u, params.window, params.splits, split);
    if (part.x >= part.y) { //~ weightless: comparison, guard dropped
        return;
    }
    let first_head = share * HEADS;
    let quads = params.head_dim >> 2u;
    let lane = lid % LANES;
    let sub = lid / LANES;
    let kv_head = first_head / (params.heads / params.kv_heads);
    // A ring holds every key of the row, so the keys wrap around its end at most once.
    let turns = part.x - part.x % params.capacity;
    //~ dropped: sign
    let place = Place(sequences[0] * params.capacity, turns, turns + params.capacity, part.y - 1u, params.kv_heads * params.head_dim);
    let of_key = kv_head * (quads >> 1u) + lane;
    let queries = Heads(
        slice_of_q(first_head * quads, lane, LANES), slice_of_q((first_head + 1u) * quads, lane, LANES),
        slice_of_q((first_head + 2u) * quads, lane, LANES), slice_of_q((first_head + 3u) * quads, lane, LANES));
    // slot: the head and the key (of four) of this thread's score. head: the head of its weights.
    // band, of_value: the keys and the elements of its values.
    let slot = sixteen_slot(LANES, lid);
    let head = lid & 3u;
    let band = 4u * (lid / HALF) + lane / 8u;
    let of_value = kv_head * (quads >> 1u) + 8u * (sub % 8u) + lane % 8u;
    var acc = Sums();
    var most = LOWEST;
    var total = 0.0;
    for (var tile = part.x; tile < part.y; tile += TILE) {
        let keys = min(part.y - tile, TILE);
        var highest = LOWEST;
        // extents.z is 1, but drivers do not know that, so they do not unroll the loops. Unrolled
        // code costs more to load than it saves in a kernel that runs once per layer.
        for (var turn = 0u; turn < keys; turn += 4u * SUBS * extents.z) {
            if (sixteen_any(turn + sub < keys)) { //~ unowned: sign, comparison, guard dropped
                let first = tile + turn + sub;
                let s = sixteen_add(
                    shares(queries, key_at(place, first, of_key)), shares(queries, key_at(place, first + SUBS, of_key)),
                    shares(queries, key_at(place, first + 2u * SUBS, of_key)), shares(queries, key_at(place, first + 3u * SUBS, of_key)), LANES, lid);
                let score = capped(s * params.scale);
                let key = turn + sub + (slot >> 2u) * SUBS;
                if (key < keys) { //~ cancels: comparison, guard dropped
                    highest = max(highest, score);
                    if ((lane & 1u) == 0u) { //~ twice: mask, off by one, guard dropped
                        gathered[key][slot & 3u] = score;
                    }
                }
            }
        }
        var next = values_at(place, tile + band, of_value);
        highest = sixteen_max(highest, LANES, lid);
        if (slot < 4u && (lane & 1u) == 0u) { //~ twice: off by one, mask; race: guard dropped
            mosts[SUBS / 4u * slot + sub / 4u][sub & 3u] = highest;
        }
        workgroupBarrier();
        let raised = max(most, highest_of(head));
        let shrink = exp(most - raised);
        most = raised;
        total *= shrink;
        if (lid < 4u) { //~ race: comparison, off by one, guard dropped
            shrinks[lid] = shrink;
        }
        // Weights past the last key are zero, up to the last one that the value loop reads.
        for (var key = lid / 4u; key < ((keys + 4u * BANDS - 1u) & ~(4u * BANDS - 1u)); key += WG / 4u * extents.z) {
            let p = select(0.0, exp(gathered[key][head] - most), key < keys);
            gathered[key][head] = p;
            total += p;
        }
        workgroupBarrier();
        if (tile > part.x) { //~ neutral: comparison, guard dropped
            acc = scaled(acc, shrinks);
        }
        for (var key = band; key < keys; key += 4u * BANDS * extents.z) {
            let values = next;
            next = values_at(place, tile + key + 4u * BANDS, of_value);
            acc = added(acc, values.a, gathered[key]);
            acc = added(acc, values.b, gathered[key + BANDS]);
            acc = added(acc, values.c, gathered[key + 2u * BANDS]);
            acc = added(acc, values.d, gathered[key + 3u * BANDS]);
        }
        workgroupBarrier();
    }
    // Each eight lanes have sums over different keys. After the exchange, the n-th eight lanes of
    // 32 have sums of head n. Then the first half of the threads adds the sums of the second half.
    let upper = (lane & 16u) != 0u;
    let odd = (lane & 8u) != 0u;
    var near = halved(halved(acc.a[0], acc.c[0], upper, 16u, lid), halved(acc.b[0], acc.d[0], upper, 16u, lid), odd, 8u, lid);
    var far = halved(halved(acc.a[1], acc.c[1], upper, 16u, lid), halved(acc.b[1], acc.d[1], upper, 16u, lid), odd, 8u, lid);
    for (var apart = 4u; apart < LANES; apart *= 2u) {
        total += lanes_other(total, apart, lid);
    }
    if (lane < 4u) { //~ race: guard dropped
        totals[SUBS / 4u * lane + sub / 4u][sub & 3u] = total;
    }
    if (lid >= HALF) { //~ race: guard dropped
        gathered[lid - HALF] = near;
        gathered[lid] = far;
    }
    workgroupBarrier();
    let pitch = select(params.splits * (quads + 1u), quads, params.splits == 1u);
    let start = first_head * pitch + split * (quads + 1u);
    if (lid < HALF) {
        near += gathered[lid];
        far += gathered[lid + HALF];
        if (params.splits == 1u) {
            let factor = 1.0 / total_of(lane / 8u);
            near *= factor;
            far *= factor;
        }
        let at = start + lane / 8u * pitch + 16u * sub + 2u * (lane % 8u);
        partial[at] = near;
        partial[at + 1u] = far;
    }
    if (lid < HEADS && params.splits > 1u) {
        partial[start + lid * pitch + quads] = vec4<f32>(most, total_of(lid), 0.0, 0.0);
    }
}
