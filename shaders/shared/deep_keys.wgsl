// The keys of a part of attention_deep.wgsl and attention_deep_raw.wgsl: `lanes` threads to a key, each with a slice of the head (eights_1.wgsl,
// eights_2.wgsl) and with the score of one of HEADS heads for one of four keys (sixteen.wgsl), so that it is weighed once. Every group of lanes has
// references of its own, raised only where a score exceeds them by RAISE, so that sums are rarely scaled (as in FlashAttention-4).
const WG = 128u;
const LOWEST = -3.0e38;
const RAISE = 10.0;
// Heads that are finished here; then sums of two heads on their way.
var<workgroup> gathered: array<vec4<f32>, 2u * SLICE_QUADS * WG>;
// (reference, sum of weights) of every group's heads.
var<workgroup> weighed: array<vec2<f32>, WG / 4u>;

// Where the keys of a part are.
struct Place { base: u32, turns: u32, ring_end: u32, last: u32, width: u32, eight: u32, lanes: u32 }

fn row_of(p: Place, key: u32) -> u32 {
    let near = min(key, p.last);
    return p.base + near - select(p.turns, p.ring_end, near >= p.ring_end);
}

fn key_at(p: Place, key: u32) -> StoredKey {
    return key_stored(row_of(p, key), p.width, p.eight, p.lanes);
}

fn value_at(p: Place, key: u32) -> StoredValue {
    return value_stored(row_of(p, key), p.width, p.eight, p.lanes);
}

// Four keys or values of a thread, `groups` apart.
struct Keys { a: StoredKey, b: StoredKey, c: StoredKey, d: StoredKey }
struct Values { a: StoredValue, b: StoredValue, c: StoredValue, d: StoredValue }

fn keys_at(p: Place, key: u32, groups: u32) -> Keys {
    return Keys(key_at(p, key), key_at(p, key + groups), key_at(p, key + 2u * groups), key_at(p, key + 3u * groups));
}

fn values_at(p: Place, key: u32, groups: u32) -> Values {
    return Values(value_at(p, key), value_at(p, key + groups), value_at(p, key + 2u * groups), value_at(p, key + 3u * groups));
}

// Heads are components and members: loops over arrays of them would leave registers.
struct Heads { a: Slice, b: Slice, c: Slice, d: Slice }

// A thread's shares of the scores of a key.
fn shares(q: Heads, key: Slice) -> vec4<f32> {
    var sums = vec4<f32>(slice_dot(q.a, key), 0.0, 0.0, 0.0);
    if (HEADS > 1u) {
        sums.y = slice_dot(q.b, key);
    }
    if (HEADS > 2u) {
        sums.z = slice_dot(q.c, key);
        sums.w = slice_dot(q.d, key);
    }
    return sums;
}

fn capped(s: f32) -> f32 {
    if (params.softcap > 0.0) {
        // Drivers return NaN from tanh of large arguments; 15 is past the last f32 below one.
        return params.softcap * tanh(clamp(s / params.softcap, -15.0, 15.0));
    }
    return s;
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

fn added(sums: Heads, value: Slice, weight: vec4<f32>) -> Heads {
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

// Leaves the sums of two heads over all groups, of the part at `start` and of the next head's, `pitch` away: results where there is one part.
fn leave(a: Slice, b: Slice, totals: vec2<f32>, start: u32, pitch: u32, lanes: u32, lid: u32) {
    let near = neighbourhood(lanes);
    let quads = params.head_dim >> 2u;
    workgroupBarrier();
    slice_gather(a, lid % near < lanes, lid / near * quads, lid % lanes, lanes);
    slice_gather(b, lid % near < lanes, (WG / near + lid / near) * quads, lid % lanes, lanes);
    workgroupBarrier();
    for (var i = lid; i < 2u * quads; i += WG) {
        let head = i / quads;
        let first = head * (WG / near) * quads + i % quads;
        var value = gathered[first];
        for (var g = 1u; g < WG / near; g++) {
            value += gathered[first + g * quads];
        }
        partial[start + head * pitch + i % quads] = select(value, value / totals[head], params.splits == 1u);
    }
}

fn references_of(group: u32) -> vec4<f32> {
    return vec4<f32>(weighed[4u * group].x, weighed[4u * group + 1u].x, weighed[4u * group + 2u].x, weighed[4u * group + 3u].x);
}

// The work of one workgroup.
fn attend(number: u32, lid: u32) {
    let sets = params.heads / HEADS;
    let t = number / (sets * params.splits);
    if (t >= step_rows()) {
        return;
    }
    let split = number % params.splits;
    let share = number / params.splits % sets;
    let end = step_end(t);
    let part = attention_part(end, positions[t] + 1u, params.window, params.splits, split);
    if (part.x >= part.y) {
        return;
    }
    let here = sixteen_here(lid);
    let first_head = t * params.heads + share * HEADS;
    let quads = params.head_dim >> 2u;
    let lanes = quads / SLICE_QUADS;
    let lane = lid % lanes;
    let group = lid / lanes;
    let groups = WG / lanes;
    let kv_head = share * HEADS / (params.heads / params.kv_heads);
    // Keys of the part that the states hold.
    let own = appends() && part.y == end;
    let past = part.y - select(0u, 1u, own);
    // A ring holds every key of the row, so that its end comes once at most.
    let turns = part.x - part.x % params.capacity;
    let place = Place(
        sequences[t] * params.capacity, turns, turns + params.capacity, max(past, part.x + 1u) - 1u, params.kv_heads * params.head_dim,
        kv_head * (quads >> 1u) + lane, lanes);
    finish_heads(first_head, kv_head, own, share * HEADS % (params.heads / params.kv_heads) == 0u, lid);
    let queries = Heads(
        query_of(first_head, 0u, lane, lanes), query_of(first_head, min(1u, HEADS - 1u), lane, lanes),
        query_of(first_head, min(2u, HEADS - 1u), lane, lanes), query_of(first_head, min(3u, HEADS - 1u), lane, lanes));
    let slot = sixteen_slot(lanes, lid);
    var acc = Heads();
    var most = LOWEST;
    var total = 0.0;
    if (own) {
        // The first group has it.
        let s = lanes_add4(shares(queries, own_key(lane, lanes)), lanes, lid) * params.scale;
        most = select(LOWEST, capped(s[slot & 3u]), group == 0u);
        total = select(0.0, 1.0, group == 0u && slot < 4u);
        acc = added(acc, own_value(lane, lanes), select(vec4<f32>(0.0), vec4<f32>(1.0), group == 0u));
    }
    for (var tile = part.x; tile < past; tile += 4u * groups) {
        let keys = keys_at(place, tile + group, groups);
        let values = values_at(place, tile + group, groups);
        let sum = sixteen_add(shares(queries, key_open(keys.a)), shares(queries, key_open(keys.b)), shares(queries, key_open(keys.c)), shares(queries, key_open(keys.d)), lanes, lid);
        let inside = tile + group + (slot >> 2u) * groups < past;
        let s = select(LOWEST, capped(sum * params.scale), inside);
        if (sixteen_any(s > most + RAISE)) {
            let reference = max(most, sixteen_max(s, lanes, lid));
            let shrink = exp(most - reference);
            most = reference;
            total *= shrink;
            sixteen_share(shrink, lid);
            acc = scaled(acc, sixteen_of(shrink, 0u, here, lanes, lid));
        }
        let p = select(0.0, exp(s - most), inside);
        total += p;
        sixteen_share(p, lid);
        acc = added(acc, value_open(values.a), sixteen_of(p, 0u, here, lanes, lid));
        acc = added(acc, value_open(values.b), sixteen_of(p, 1u, here, lanes, lid));
        acc = added(acc, value_open(values.c), sixteen_of(p, 2u, here, lanes, lid));
        acc = added(acc, value_open(values.d), sixteen_of(p, 3u, here, lanes, lid));
    }
    total = sixteen_total(total, lanes, lid);
    if (slot < 4u && lane % (lanes / 16u) == 0u) {
        weighed[4u * group + slot] = vec2<f32>(most, total);
    }
    workgroupBarrier();
    var all = vec4<f32>(LOWEST);
    for (var g = 0u; g < groups; g++) {
        all = max(all, references_of(g));
    }
    acc = scaled(acc, exp(references_of(group) - all));
    var sum = vec4<f32>(0.0);
    for (var g = 0u; g < groups; g++) {
        sum += vec4<f32>(weighed[4u * g].y, weighed[4u * g + 1u].y, weighed[4u * g + 2u].y, weighed[4u * g + 3u].y) * exp(references_of(g) - all);
    }
    let pitch = select(params.splits * (quads + 1u), quads, params.splits == 1u);
    let start = first_head * pitch + split * (quads + 1u);
    leave(acc.a, acc.b, sum.xy, start, pitch, lanes, lid);
    if (HEADS > 2u) {
        leave(acc.c, acc.d, sum.zw, start + 2u * pitch, pitch, lanes, lid);
    }
    if (lid < HEADS && params.splits > 1u) {
        partial[start + lid * pitch + quads] = vec4<f32>(all[lid], sum[lid], 0.0, 0.0);
    }
}
