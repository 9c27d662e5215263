// A tile of 32 queries and a tile of KEYS keys in f16, SLICE columns of the head at a time, with
// zeros for rows that do not exist: rows past the step may hold any bits. A query is a row with one
// of the query heads that share a kv head. A workgroup numbers its queries by row, then by head.
// Needs: SLICE, HEAD, KINDS, KEYS, params.heads, params.kv_heads, q, k, keys_seen. Gives: QUERIES,
// SUBGROUPS, WG, PER_ROW, SLICES, QUADS, WIDE, LARGEST, qs, ks, Queries, exists, row_of, place,
// halves, stage_q, stage_k, keys_of_rows.
const QUERIES = 32u;
const SUBGROUPS = SLICE / 16u;
const WG = 32u * SUBGROUPS;
// Threads of a query where scores become weights.
const PER_ROW = WG / QUERIES;
const SLICES = HEAD / SLICE;
const QUADS = SLICE / 4u;
// Pitch of rows in vectors of four, padded against bank conflicts.
const WIDE = QUADS + 2u;
const LARGEST = vec4<f32>(65504.0);
// If KINDS is 2, rows of dy follow the queries, and values follow the keys.
var<workgroup> qs: array<vec4<f16>, KINDS * QUERIES * WIDE>;
var<workgroup> ks: array<vec4<f16>, KINDS * KEYS * WIDE>;

// The queries from number `first` on, of `count` whose rows begin at `origin`.
struct Queries { origin: u32, first: u32, count: u32, kv_head: u32 }

// Whether the i-th query exists.
fn exists(tile: Queries, i: u32) -> bool {
    return tile.first + i < tile.count;
}

// The row of the i-th query, or of the last query if there is no i-th.
fn row_of(tile: Queries, i: u32) -> u32 {
    return tile.origin + min(tile.first + i, tile.count - 1u) / (params.heads / params.kv_heads);
}

// The index of the i-th query, or of the last, among the heads of all rows.
fn place(tile: Queries, i: u32) -> u32 {
    let group = params.heads / params.kv_heads;
    return row_of(tile, i) * params.heads + tile.kv_head * group + min(tile.first + i, tile.count - 1u) % group;
}

fn halves(v: vec4<f32>) -> vec4<f16> {
    return vec4<f16>(clamp(v, -LARGEST, LARGEST));
}

// Stages a slice of the queries.
fn stage_q(tile: Queries, slice: u32, lid: u32) {
    for (var i = lid; i < QUERIES * QUADS; i += WG) { //~ later: comparison
        let row = i / QUADS;
        let quad = i % QUADS;
        let v = halves(q[place(tile, row) * (HEAD / 4u) + slice * QUADS + quad]);
        qs[row * WIDE + quad] = select(vec4<f16>(), v, exists(tile, row));
    }
}

// Stages a slice of the keys from `key0` on, which exist below `end`.
fn stage_k(key0: u32, end: u32, kv_head: u32, slice: u32, lid: u32) {
    for (var i = lid; i < KEYS * QUADS; i += WG) { //~ later: comparison
        let row = i / QUADS;
        let quad = i % QUADS;
        let at = (min(key0 + row, end - 1u) * params.kv_heads + kv_head) * (HEAD / 4u);
        ks[row * WIDE + quad] = select(vec4<f16>(), halves(k[at + slice * QUADS + quad]), key0 + row < end); //~ weightless: comparison
    }
}

// The first key that any of `count` rows from `t0` on sees, which is that of the first row, and one
// past the last.
fn keys_of_rows(t0: u32, count: u32) -> vec2<u32> {
    let first = keys_seen(t0);
    var end = first.y;
    for (var t = t0 + 1u; t < t0 + count; t++) { //~ weightless: comparison
        end = max(end, keys_seen(t).y);
    }
    return vec2<u32>(first.x, end);
}
