// The keys of a part of attention_split_128.wgsl and attention_decode_split.wgsl, up to TILE at a
// time, in three phases: scores (16 lanes per key, sixteen.wgsl), weights (four threads per key),
// values (16 lanes per key). The next keys and values are loaded meanwhile.
// Needs: HEADS, StoredKey, key_stored, StoredValue, value_stored, Slice, key_open, slice_dot,
// params.softcap, slice_of_gathered, params.head_dim, lanes_other4, params.heads, params.splits,
// step_end, attention_part, positions, params.window, params.kv_heads, appends, params.capacity,
// sequences, finish_heads, lanes_add, params.scale, sixteen_any, sixteen_add, sixteen_max,
// lanes_other, value_open, partial. Gives: WG, GROUPS, TILE, LOWEST, gathered, Place, row_of,
// key_at, Keys, Values, attend.
const WG = 128u;
const LANES = 16u;
const GROUPS = WG / LANES;
const TILE = 320u;
const LOWEST = -3.0e38;
const_assert TILE + 32u * (HEADS + 2u) <= 4u * WG && TILE % (4u * GROUPS) == 0u;
// Scores, then weights, of each key of a tile; finished heads; at the end sums of values.
var<workgroup> gathered: array<vec4<f32>, 4u * WG>;
// For every 32 threads and head: maximum of the scores; at the end sum of the weights.
var<workgroup> of_heads: array<f32, WG / 8u>;
// Scores of this row's own key.
var<workgroup> own_scores: array<f32, 4>;
// Factors of the heads' sums where a tile raises a maximum; at the end the own value's weights.
var<workgroup> factors: vec4<f32>;

struct Place { base: u32, turns: u32, ring_end: u32, last: u32, width: u32, eight: u32 }

fn row_of(p: Place, key: u32) -> u32 {
    let near = min(key, p.last);
    return p.base + near - select(p.turns, p.ring_end, near >= p.ring_end);
}
fn key_at(p: Place, key: u32) -> StoredKey {
    return key_stored(row_of(p, key), p.width, p.eight, LANES);
}
fn value_at(p: Place, key: u32) -> StoredValue {
    return value_stored(row_of(p, key), p.width, p.eight, LANES);
}

// Four keys or values of a thread, GROUPS apart.
struct Keys { a: StoredKey, b: StoredKey, c: StoredKey, d: StoredKey }
struct Values { a: StoredValue, b: StoredValue, c: StoredValue, d: StoredValue }

fn keys_at(p: Place, key: u32) -> Keys {
    return Keys(key_at(p, key), key_at(p, key + GROUPS), key_at(p, key + 2u * GROUPS), key_at(p, key + 3u * GROUPS));
}
fn values_at(p: Place, key: u32) -> Values {
    return Values(value_at(p, key), value_at(p, key + GROUPS), value_at(p, key + 2u * GROUPS), value_at(p, key + 3u * GROUPS));
}

// Each head is a member: arrays that loops index would not stay in registers.
struct Heads { a: Slice, b: Slice, c: Slice, d: Slice }

// This thread's shares of the scores of a key.
fn shares(q: Heads, stored: StoredKey) -> vec4<f32> {
    let key = key_open(stored);
    var sums = vec4<f32>(slice_dot(q.a, key), slice_dot(q.b, key), 0.0, 0.0);
    if (HEADS > 2u) {
        sums.z = slice_dot(q.c, key);
        sums.w = slice_dot(q.d, key);
    }
    return sums;
}

fn capped(s: f32) -> f32 {
    if (params.softcap > 0.0) {
        // Clamped: some drivers return NaN from tanh of large arguments. tanh(15) rounds to 1.
        return params.softcap * tanh(clamp(s / params.softcap, -15.0, 15.0));
    }
    return s;
}

fn added(sums: Heads, value: Slice, weight: vec4<f32>) -> Heads {
    var s = sums;
    s.a += value * weight.x;
    s.b += value * weight.y;
    if (HEADS > 2u) {
        s.c += value * weight.z;
        s.d += value * weight.w;
    }
    return s;
}

// This lane's slice of the n-th finished head.
fn finished(n: u32, lane: u32) -> Slice {
    return slice_of_gathered(TILE + n * (params.head_dim >> 2u), lane, LANES);
}

// `low`, or `high` if `upper`, summed over threads 16 apart. The other thread gets the other sum.
fn halved(low: vec4<f32>, high: vec4<f32>, upper: bool, lid: u32) -> vec4<f32> {
    return select(low, high, upper) + lanes_other4(select(high, low, upper), 16u, lid);
}

fn total_of(head: u32) -> f32 {
    var sum = of_heads[head];
    for (var g = 1u; g < WG / 32u; g++) {
        sum += of_heads[4u * g + head];
    }
    return sum;
}

fn attend(number: u32, lid: u32) {
    let sets = params.heads / HEADS; //~ never: product
    if (number >= sets * params.splits) {
        return;
    }
    let split = number % params.splits;
    let share = number / params.splits;
    let end = step_end();
    let part = attention_part(end, positions[0] + 1u, params.window, params.splits, split);
    if (part.x >= part.y) { //~ weightless: comparison, component, guard dropped
        return;
    }
    let first_head = share * HEADS;
    let quads = params.head_dim >> 2u;
    let lane = lid % LANES;
    let group = lid / LANES;
    let kv_head = first_head / (params.heads / params.kv_heads);
    // One past the part's last key that the states hold.
    let own = appends() && part.y == end;
    let past = part.y - select(0u, 1u, own);
    // A ring holds every key of the row, so the keys wrap around its end at most once.
    let turns = part.x - part.x % params.capacity;
    let place = Place(
        //~ dropped: sign, minimum, component, off by one
        sequences[0] * params.capacity, turns, turns + params.capacity, max(past, part.x + 1u) - 1u, params.kv_heads * params.head_dim,
        kv_head * (quads >> 1u) + lane);
    var keys = keys_at(place, part.x + group);
    finish_heads(first_head, kv_head, own, first_head % (params.heads / params.kv_heads) == 0u, lid);
    //~ surplus: minimum, off by one
    let queries = Heads(finished(0u, lane), finished(1u, lane), finished(min(2u, HEADS - 1u), lane), finished(min(3u, HEADS - 1u), lane));
    // Every 32 threads have the score of one head.
    var own_score = LOWEST;
    if (own) {
        //~ rounded: off by one
        own_score = capped(lanes_add(dot(gathered[TILE + lid], gathered[TILE + HEADS * quads + lid % 32u]), 32u, lid) * params.scale);
    }
    if (lid % 32u == 0u) {
        own_scores[lid / 32u] = own_score;
    }
    // The head of this thread's scores and weights.
    let head = lid % 4u;
    var acc = Heads();
    var most = LOWEST;
    var total = 0.0;
    for (var tile = part.x; ; tile += TILE) {
        let count = min(past - tile, TILE);
        var highest = LOWEST;
        for (var turn = 0u; turn < count; turn += 4u * GROUPS) {
            if (sixteen_any(turn + group < count)) { //~ unowned: sign, comparison, guard dropped
                let four = keys;
                keys = keys_at(place, tile + turn + 4u * GROUPS + group);
                let sum = sixteen_add(shares(queries, four.a), shares(queries, four.b), shares(queries, four.c), shares(queries, four.d), LANES, lid);
                let key = turn + group + lane / 4u * GROUPS;
                if (key < count) { //~ cancels: comparison, guard dropped
                    let s = capped(sum * params.scale);
                    gathered[key][head] = s;
                    highest = max(highest, s);
                }
            }
        }
        var values = values_at(place, tile + group);
        highest = sixteen_max(highest, LANES, lid);
        highest = max(highest, lanes_other(highest, 16u, lid));
        if (lid % 32u < 4u) { //~ twice: product, comparison, off by one, guard dropped
            of_heads[lid / 32u * 4u + head] = highest;
        }
        workgroupBarrier();
        var raised = max(most, own_scores[head]);
        for (var g = 0u; g < WG / 32u; g++) {
            raised = max(raised, of_heads[4u * g + head]);
        }
        let shrink = exp(most - raised);
        most = raised;
        total *= shrink;
        if (lid < 4u) { //~ race: comparison, off by one, guard dropped
            factors[lid] = shrink;
        }
        // Weights past the last key are zero, up to the last one that the value loop reads.
        for (var key = lid / 4u; key < ((count + 4u * GROUPS - 1u) & ~(4u * GROUPS - 1u)); key += WG / 4u) { //~ empty: comparison
            let p = select(0.0, exp(gathered[key][head] - most), key < count);
            gathered[key][head] = p;
            total += p;
        }
        workgroupBarrier();
        if (tile > part.x) { //~ neutral: comparison, component, guard dropped
            acc = Heads(acc.a * factors.x, acc.b * factors.y, acc.c * factors.z, acc.d * factors.w);
        }
        for (var key = group; key < count; key += 4u * GROUPS) {
            let four = values;
            values = values_at(place, tile + key + 4u * GROUPS);
            acc = added(acc, value_open(four.a), gathered[key]);
            acc = added(acc, value_open(four.b), gathered[key + GROUPS]);
            acc = added(acc, value_open(four.c), gathered[key + 2u * GROUPS]);
            acc = added(acc, value_open(four.d), gathered[key + 3u * GROUPS]);
        }
        workgroupBarrier();
        if (tile + TILE >= past) { //~ empty: comparison
            break;
        }
        // Loaded again: keys loaded in the last turn would take registers from the values.
        keys = keys_at(place, tile + TILE + group);
    }
    if (own && lid < 4u) {
        let p = exp(own_scores[head] - most);
        total += p;
        factors[lid] = p;
    }
    for (var apart = 4u; apart < 32u; apart *= 2u) {
        total += lanes_other(total, apart, lid);
    }
    if (lid % 32u < 4u) { //~ twice: product, comparison, off by one, guard dropped
        of_heads[lid / 32u * 4u + head] = total;
    }
    workgroupBarrier();
    if (own && group == 0u) { //~ free: off by one
        acc = added(acc, finished(HEADS + 1u, lane), factors);
    }
    // Two groups have sums over different keys. Each gets two heads, summed over both groups.
    let upper = (lid & 16u) != 0u;
    let a = Slice(halved(acc.a[0], acc.c[0], upper, lid), halved(acc.a[1], acc.c[1], upper, lid));
    let b = Slice(halved(acc.b[0], acc.d[0], upper, lid), halved(acc.b[1], acc.d[1], upper, lid));
    workgroupBarrier();
    let at = 128u * (lid / 32u) + select(0u, 64u, upper) + lane;
    gathered[at] = a[0];
    gathered[at + 16u] = a[1];
    gathered[at + 32u] = b[0];
    gathered[at + 48u] = b[1];
    workgroupBarrier();
    let pitch = select(params.splits * (quads + 1u), quads, params.splits == 1u);
    let start = first_head * pitch + split * (quads + 1u);
    if (lid < 32u * HEADS) {
        var sum = gathered[lid];
        for (var g = 1u; g < WG / 32u; g++) {
            sum += gathered[128u * g + lid];
        }
        if (params.splits == 1u) {
            sum /= total_of(lid / 32u);
        }
        partial[start + lid / 32u * pitch + 2u * lane + (lid / 16u) % 2u] = sum;
    }
    if (lid < HEADS && params.splits > 1u) {
        partial[start + lid * pitch + quads] = vec4<f32>(most, total_of(lid), 0.0, 0.0);
    }
}
