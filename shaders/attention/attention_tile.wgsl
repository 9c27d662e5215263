// y[t, n] = sum_s p[s] v[s], p = softmax_s(cap(scale q[t, n] . k[s])), as in attention.wgsl, for
// many rows
// The operands are as in attention.wgsl. One workgroup has up to QUERIES queries: neighbouring rows
// with all heads that share a kv head. It walks their keys, KEYS at a time, with a running maximum.
// The keys of several sequences follow one another. A thread computes four queries by four keys of
// the scores, and four queries by four quads of the results. Queries and keys are staged SLICE
// columns at a time, values DEEP keys at a time, so that 16 KB of workgroup memory are enough. The
// next ones are loaded while the threads multiply the staged ones.
// Needs: HEAD, WG, SLICE (the variant), Softmax, leave, weigh, weights_of, half_of, leave_number,
// number_of (tile_weights.wgsl), first_key, keys_of, start_of_keys (slot keys), load_ahead,
// stage_ahead, load_values, stage_values (tile_loads.wgsl). Gives: QUERIES, QUADS, KEYS, q, places,
// params.kv_heads, tile, COLUMNS, values, params.scale, params.softcap, seen, SCORE_ROWS, LOWEST,
// PER_ROW, shrinks, sequences, params.capacity.
struct Params { heads: u32, kv_heads: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> y: array<vec4<f32>>;

// Threads that share four queries, and sets of four queries.
const COLUMNS = HEAD / 16u;
const BANDS = WG / COLUMNS;
const QUERIES = 4u * BANDS;
const KEYS = 4u * COLUMNS;
// Softmax threads per query. Each has four quads of a tile's keys.
const PER_ROW = WG / QUERIES;
const DEEP = 8u * WG / HEAD;
// Vectors of four in a row of `tile`.
const QUADS = SLICE / 4u;
// Rows of `tile` with the scores of a query.
const SCORE_ROWS = (COLUMNS + QUADS - 1u) / QUADS;
const LOWEST = -3.0e38;
// A slice of the queries and of the keys; then the scores and weights of a tile. The rows are
// padded against bank conflicts. Rows of arrays keep a check of bounds out of the products, because
// the second index is a constant there.
var<workgroup> tile: array<array<vec4<f32>, QUADS + 1u>, max(QUERIES + KEYS, QUERIES * SCORE_ROWS)>;
// Values; while scores become weights, the largest score of each softmax thread.
var<workgroup> values: array<array<vec4<f32>, HEAD / 4u>, DEEP>;
// For each query: the factor of its sums, the first key that it sees and one past the last, and the
// start of its head in q and y, in vectors of four.
var<workgroup> shrinks: array<f32, QUERIES>;
var<workgroup> seen: array<vec2<u32>, QUERIES>;
var<workgroup> places: array<u32, QUERIES>;

// The scores of four queries for four keys.
struct Four { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

// The products of the staged columns. The caller adds these sums to those of other columns, because
// sums in two levels lose fewer digits than one long sum. Every product is a fused multiply-add, so
// that equal keys have equal scores.
fn multiply(column: u32, band: u32) -> Four {
    var s = Four();
    for (var i = 0u; i < QUADS; i++) { //~ zeros: comparison
        let e = tile[QUERIES + column][i];
        let f = tile[QUERIES + COLUMNS + column][i];
        let g = tile[QUERIES + 2u * COLUMNS + column][i];
        let h = tile[QUERIES + 3u * COLUMNS + column][i];
        // Column n of `k` has the n-th component of each of the four keys.
        let k = mat4x4<f32>(
            vec4<f32>(e.x, f.x, g.x, h.x), vec4<f32>(e.y, f.y, g.y, h.y), vec4<f32>(e.z, f.z, g.z, h.z), vec4<f32>(e.w, f.w, g.w, h.w));
        s.a = times(s.a, tile[band][i], k);
        s.b = times(s.b, tile[BANDS + band][i], k);
        s.c = times(s.c, tile[2u * BANDS + band][i], k);
        s.d = times(s.d, tile[3u * BANDS + band][i], k);
    }
    return s;
}

fn times(sum: vec4<f32>, x: vec4<f32>, k: mat4x4<f32>) -> vec4<f32> {
    return fma(vec4<f32>(x.w), k[3], fma(vec4<f32>(x.z), k[2], fma(vec4<f32>(x.y), k[1], fma(vec4<f32>(x.x), k[0], sum))));
}

// Four quads of the staged value `key`.
fn values_of(key: u32, column: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        values[key][column], values[key][COLUMNS + column], values[key][2u * COLUMNS + column], values[key][3u * COLUMNS + column]);
}

fn weighted(sums: mat4x4<f32>, weights: vec2<f32>, near: mat4x4<f32>, far: mat4x4<f32>) -> mat4x4<f32> {
    let a = vec4<f32>(weights.x);
    let b = vec4<f32>(weights.y);
    return mat4x4<f32>(
        fma(b, far[0], fma(a, near[0], sums[0])), fma(b, far[1], fma(a, near[1], sums[1])),
        fma(b, far[2], fma(a, near[2], sums[2])), fma(b, far[3], fma(a, near[3], sums[3])));
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
    // Two neighbouring threads have the same columns, which saves reads of workgroup memory.
    let column = lid / 2u % COLUMNS;
    let band = lid / (2u * COLUMNS) * 2u + lid % 2u;
    // This thread's query, for the tables of queries.
    let own = min(t0 + lid / group, params.rows - 1u);
    if (lid < QUERIES) {
        places[lid] = (own * params.heads + id.x * group + lid % group) * (HEAD / 4u);
    }
    workgroupBarrier();
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
        while (past < count && sequences[min(t0 + past, params.rows - 1u)] == owner) { //~ weightless: comparison
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
        for (var key0 = from_key; key0 < to_key; key0 += KEYS) {
            let start = start_of_keys(key0);
            let past = last - key0; //~ weightless: sign
            var s = Four();
            var ahead = load_ahead(base, start, past, 0u, id.x, lid); //~ rounded: off by one
            for (var slice = 0u; slice < HEAD; slice += SLICE) { //~ rounded: off by one
                workgroupBarrier();
                stage_ahead(ahead, lid);
                workgroupBarrier();
                if (slice + SLICE < HEAD) { //~ dropped: comparison, guard dropped
                    ahead = load_ahead(base, start, past, slice + SLICE, id.x, lid);
                }
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
            var values_ahead = load_values(base, start, past, 0u, id.x, lid);
            workgroupBarrier();
            softmax = weigh(softmax, lid);
            // The values of a tile are summed by themselves, because sums in two levels lose fewer
            // digits than one long sum.
            var e0 = mat4x4<f32>();
            var e1 = mat4x4<f32>();
            var e2 = mat4x4<f32>();
            var e3 = mat4x4<f32>();
            for (var deep = 0u; deep < KEYS; deep += DEEP) {
                workgroupBarrier();
                stage_values(values_ahead, lid);
                workgroupBarrier();
                if (deep == 0u) {
                    o0 *= shrinks[band];
                    o1 *= shrinks[band + BANDS];
                    o2 *= shrinks[band + 2u * BANDS];
                    o3 *= shrinks[band + 3u * BANDS];
                }
                if (deep + DEEP < KEYS) { //~ dropped: comparison, guard dropped
                    values_ahead = load_values(base, start, past, deep + DEEP, id.x, lid);
                }
                for (var i = 0u; i < DEEP; i += 4u) { //~ empty: comparison
                    let a = weights_of(band, deep + i);
                    let b = weights_of(band + BANDS, deep + i);
                    let c = weights_of(band + 2u * BANDS, deep + i);
                    let d = weights_of(band + 3u * BANDS, deep + i);
                    for (var j = i; j < min(i + 4u, DEEP); j += 2u) {
                        let key = deep + j; //~ alike: sign
                        let near = values_of(j, column);
                        let far = values_of(j + 1u, column);
                        e0 = weighted(e0, half_of(a, key), near, far);
                        e1 = weighted(e1, half_of(b, key), near, far);
                        e2 = weighted(e2, half_of(c, key), near, far);
                        e3 = weighted(e3, half_of(d, key), near, far);
                    }
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
    leave_number(softmax.total, lid);
    workgroupBarrier();
    if (lid < QUERIES) {
        var total = 0.0;
        for (var i = 0u; i < PER_ROW; i++) {
            total += number_of(lid, i);
        }
        shrinks[lid] = 1.0 / total;
    }
    workgroupBarrier();
    finish(band, column, count * group, o0);
    finish(band + BANDS, column, count * group, o1);
    finish(band + 2u * BANDS, column, count * group, o2);
    finish(band + 3u * BANDS, column, count * group, o3);
}
