// y[t, n] = sum_s p[s] v[s], p = softmax_s(cap(scale q[t, n] . k[s])), as in attention.wgsl, for
// many rows
// The operands are as in attention.wgsl. One workgroup has up to QUERIES queries: neighbouring rows
// with all heads that share a kv head. It walks their keys, KEYS at a time, with a running maximum.
// The keys of several sequences follow one another. A thread computes four queries by four keys of
// the scores, and four queries by four quads of the results. Queries and keys are staged SLICE
// columns at a time, values DEEP keys at a time, so that 16 KB of workgroup memory are enough.
struct Params { heads: u32, kv_heads: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> y: array<vec4<f32>>;

const WG = 128u;
// Threads that share four queries, and sets of four queries.
const COLUMNS = HEAD / 16u;
const BANDS = WG / COLUMNS;
const QUERIES = 4u * BANDS;
const KEYS = 4u * COLUMNS;
// Softmax threads per query. Each has four quads of a tile's keys.
const PER_ROW = WG / QUERIES;
const DEEP = 1024u / HEAD;
// Pitches of rows in vectors of four, padded against bank conflicts.
const PITCH = SLICE / 4u + 1u;
const WEIGHTS = COLUMNS + 1u;
// Where the values follow the weights.
const VALUES = QUERIES * WEIGHTS;
const LOWEST = -3.0e38;
// Queries and keys; then scores, weights and values.
var<workgroup> tile: array<vec4<f32>, max((QUERIES + KEYS) * PITCH, VALUES + 2u * WG)>;
// For each query: the factor of its sums, the first key that it sees and one past the last, and the
// start of its head in q and y, in vectors of four.
var<workgroup> shrinks: array<f32, QUERIES>;
var<workgroup> seen: array<vec2<u32>, QUERIES>;
var<workgroup> places: array<u32, QUERIES>;

// The scores of four queries for four keys.
struct Four { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

// Stages SLICE columns of the queries and of the keys. Key 4 c + j is row c + j COLUMNS, so that
// the rows that neighbouring threads read together lie in different banks.
fn stage(base: u32, key0: u32, last: u32, slice: u32, kv_head: u32, lid: u32) {
    for (var i = lid; i < QUERIES * (SLICE / 4u); i += WG) {
        tile[i / (SLICE / 4u) * PITCH + i % (SLICE / 4u)] = q[places[i / (SLICE / 4u)] + slice / 4u + i % (SLICE / 4u)];
    }
    for (var i = lid; i < KEYS * (SLICE / 8u); i += WG) {
        let key = i / (SLICE / 8u);
        let unit = i % (SLICE / 8u);
        let row = row_of_key(base, min(key0 + key, last));
        let eight = k_state_read8(k_state_fetch8(row, params.kv_heads * HEAD, (kv_head * HEAD + slice) / 8u + unit));
        let at = (QUERIES + key / 4u + key % 4u * COLUMNS) * PITCH + 2u * unit;
        tile[at] = eight[0];
        tile[at + 1u] = eight[1];
    }
}

// The products of the staged columns. Their sums are added up by the caller, because two levels of
// sums lose less than one. Each product is a fused one, so that equal keys have equal scores.
fn multiply(column: u32, band: u32) -> Four {
    var s = Four();
    for (var i = 0u; i < SLICE / 4u; i++) {
        let keys = (QUERIES + column) * PITCH + i;
        let e = tile[keys];
        let f = tile[keys + COLUMNS * PITCH];
        let g = tile[keys + 2u * COLUMNS * PITCH];
        let h = tile[keys + 3u * COLUMNS * PITCH];
        // Column by column of the four keys.
        let k = mat4x4<f32>(
            vec4<f32>(e.x, f.x, g.x, h.x), vec4<f32>(e.y, f.y, g.y, h.y), vec4<f32>(e.z, f.z, g.z, h.z), vec4<f32>(e.w, f.w, g.w, h.w));
        let queries = band * PITCH + i;
        let a = tile[queries];
        let b = tile[queries + BANDS * PITCH];
        let c = tile[queries + 2u * BANDS * PITCH];
        let d = tile[queries + 3u * BANDS * PITCH];
        s.a = fma(vec4<f32>(a.x), k[0], s.a);
        s.b = fma(vec4<f32>(b.x), k[0], s.b);
        s.c = fma(vec4<f32>(c.x), k[0], s.c);
        s.d = fma(vec4<f32>(d.x), k[0], s.d);
        s.a = fma(vec4<f32>(a.y), k[1], s.a);
        s.b = fma(vec4<f32>(b.y), k[1], s.b);
        s.c = fma(vec4<f32>(c.y), k[1], s.c);
        s.d = fma(vec4<f32>(d.y), k[1], s.d);
        s.a = fma(vec4<f32>(a.z), k[2], s.a);
        s.b = fma(vec4<f32>(b.z), k[2], s.b);
        s.c = fma(vec4<f32>(c.z), k[2], s.c);
        s.d = fma(vec4<f32>(d.z), k[2], s.d);
        s.a = fma(vec4<f32>(a.w), k[3], s.a);
        s.b = fma(vec4<f32>(b.w), k[3], s.b);
        s.c = fma(vec4<f32>(c.w), k[3], s.c);
        s.d = fma(vec4<f32>(d.w), k[3], s.d);
    }
    return s;
}

// Four quads of the staged value `key`.
fn values_of(key: u32, column: u32) -> mat4x4<f32> {
    let at = VALUES + key * (HEAD / 4u) + column;
    return mat4x4<f32>(tile[at], tile[at + COLUMNS], tile[at + 2u * COLUMNS], tile[at + 3u * COLUMNS]);
}

// The weights of keys `key` and `key` + 1.
fn weights_of(query: u32, key: u32) -> vec2<f32> {
    let four = tile[query * WEIGHTS + key / 4u];
    return select(four.xy, four.zw, (key & 2u) != 0u);
}

fn finish(query: u32, column: u32, count: u32, sums: mat4x4<f32>) {
    if (query >= count) {
        return;
    }
    let at = places[query] + column;
    let factor = shrinks[query];
    y[at] = sums[0] * factor;
    y[at + COLUMNS] = sums[1] * factor;
    y[at + 2u * COLUMNS] = sums[2] * factor;
    y[at + 3u * COLUMNS] = sums[3] * factor;
}

@compute @workgroup_size(WG)
fn attention_tile(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let group = params.heads / params.kv_heads;
    let tokens = QUERIES / group;
    // Rows that see the most keys start first.
    let t0 = (extents.y - 1u - id.y) * tokens;
    let count = min(tokens, params.rows - t0); //~ clamped: sign; twice: minimum
    let column = lid % COLUMNS;
    let band = lid / COLUMNS;
    // This thread's query, for the tables of queries.
    let own = min(t0 + lid / group, params.rows - 1u); //~ unowned: sign
    if (lid < QUERIES) {
        places[lid] = (own * params.heads + id.x * group + lid % group) * (HEAD / 4u);
    }
    var softmax = Softmax(LOWEST, 0.0);
    var o0 = mat4x4<f32>();
    var o1 = mat4x4<f32>();
    var o2 = mat4x4<f32>();
    var o3 = mat4x4<f32>();
    // The bounds are read from the operands, because then they are known to be uniform.
    for (var first = 0u; first < count;) { //~ empty: comparison
        let owner = sequences[t0 + first];
        var past = first;
        var from_key = 0xffffffffu;
        var to_key = 0u; //~ never: off by one
        while (past < count && sequences[min(t0 + past, params.rows - 1u)] == owner) { //~ never: sign; weightless: comparison
            let next = positions[t0 + past] + 1u;
            //~ weightless: sign, minimum, off by one
            from_key = min(from_key, max(first_key(t0 + past), select(0u, next - min(next, params.window), params.window > 0u)));
            to_key = max(to_key, ends[t0 + past] + params.causal);
            past++;
        }
        let base = keys_of(t0 + first);
        if (lid < QUERIES) {
            let next = positions[own] + 1u;
            let start = max(first_key(own), select(0u, next - min(next, params.window), params.window > 0u));
            let mine = lid / group >= first && lid / group < past;
            seen[lid] = vec2<u32>(start, select(0u, ends[own] + params.causal, mine));
        }
        let last = max(to_key, 1u) - 1u; //~ weightless: sign, off by one
        for (var key0 = from_key; key0 < to_key; key0 += KEYS) { //~ empty: comparison
            var s = Four();
            for (var slice = 0u; slice < HEAD; slice += SLICE) { //~ rounded: off by one
                workgroupBarrier();
                stage(base, key0, last, slice, id.x, lid);
                workgroupBarrier();
                let more = multiply(column, band);
                s.a += more.a;
                s.b += more.b;
                s.c += more.c;
                s.d += more.d;
            }
            workgroupBarrier();
            leave(s.a, band, column, key0);
            leave(s.b, band + BANDS, column, key0);
            leave(s.c, band + 2u * BANDS, column, key0);
            leave(s.d, band + 3u * BANDS, column, key0);
            workgroupBarrier();
            softmax = weigh(softmax, lid);
            // The sums of a tile's values are apart, because two levels of sums lose less than one.
            var e0 = mat4x4<f32>();
            var e1 = mat4x4<f32>();
            var e2 = mat4x4<f32>();
            var e3 = mat4x4<f32>();
            for (var deep = 0u; deep < KEYS; deep += DEEP) {
                workgroupBarrier();
                let row = row_of_key(base, min(key0 + deep + lid / (HEAD / 8u), last));
                let eight = v_state_read8(v_state_fetch8(row, params.kv_heads * HEAD, id.x * (HEAD / 8u) + lid % (HEAD / 8u)));
                tile[VALUES + 2u * lid] = eight[0];
                tile[VALUES + 2u * lid + 1u] = eight[1];
                workgroupBarrier();
                if (deep == 0u) {
                    o0 *= shrinks[band];
                    o1 *= shrinks[band + BANDS];
                    o2 *= shrinks[band + 2u * BANDS];
                    o3 *= shrinks[band + 3u * BANDS];
                }
                for (var i = 0u; i < DEEP; i += 2u) {
                    let near = values_of(i, column);
                    let far = values_of(i + 1u, column);
                    let a = weights_of(band, deep + i);
                    let b = weights_of(band + BANDS, deep + i);
                    let c = weights_of(band + 2u * BANDS, deep + i);
                    let d = weights_of(band + 3u * BANDS, deep + i);
                    e0 += a.x * near;
                    e1 += b.x * near;
                    e2 += c.x * near;
                    e3 += d.x * near;
                    e0 += a.y * far;
                    e1 += b.y * far;
                    e2 += c.y * far;
                    e3 += d.y * far;
                }
            }
            o0 += e0;
            o1 += e1;
            o2 += e2;
            o3 += e3;
        }
        first = max(past, first + 1u);
    }
    workgroupBarrier();
    tile[lid].x = softmax.total;
    workgroupBarrier();
    if (lid < QUERIES) {
        var total = 0.0;
        for (var i = 0u; i < PER_ROW; i++) {
            total += tile[lid * PER_ROW + i].x;
        }
        shrinks[lid] = 1.0 / total;
    }
    workgroupBarrier();
    finish(band, column, count * group, o0);
    finish(band + BANDS, column, count * group, o1);
    finish(band + 2u * BANDS, column, count * group, o2);
    finish(band + 3u * BANDS, column, count * group, o3);
}
