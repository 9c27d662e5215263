// The derivatives of attention by the scores of a tile, and the weights of its keys, from the
// products that tile32_scores.wgsl left; and the rows of dy and of v for these products. dy is in
// f16, divided by dy_scales by row. A derivative is relative to a power of two, `most`, and to
// SLOPE, a weight to WEIGHT: then f16 holds both. (Dao 2023, arXiv 2307.08691, algorithm 2.)
// Needs: KEYS, Queries, place, row_of, keys_seen, exists, dy_scales, stats, scores, SCORES,
// QUERIES, score_slope, halves, QUADS, WG, dy, HEAD, qs, WIDE, params.kv_heads, ks, v. Gives:
// SLOPE, WEIGHT, PITCH, query_of, slopes, stage_dy, stage_v.
const SLOPE = 1024.0;
const WEIGHT = 1.0 / 32768.0;
// Pitch of rows of what is made here in vectors of four, padded against bank conflicts.
const PITCH = KEYS / 4u + 2u;

// What a thread knows of its query: the keys that it sees, and the scale of its row, its
// log-sum-exp and its delta, two of them over `most`.
struct Query { seen: vec2<u32>, unit: f32, lse: f32, delta: f32 }
struct Slopes { ds: vec4<f16>, p: vec4<f16> }

fn query_of(tile: Queries, i: u32, most: f32) -> Query {
    let at = place(tile, i);
    let t = row_of(tile, i);
    let seen = select(vec2<u32>(), keys_seen(t), exists(tile, i));
    return Query(seen, dy_scales[t] / most, stats[2u * at], stats[2u * at + 1u] / most);
}

// The derivatives by the scores of query `row` with four keys from `key` on, and their weights.
fn slopes(query: Query, row: u32, quad: u32, key: u32) -> Slopes {
    let products = scores[row * SCORES + quad];
    let dp = scores[(QUERIES + row) * SCORES + quad];
    let a = score_slope(products.x);
    let b = score_slope(products.y);
    let c = score_slope(products.z);
    let d = score_slope(products.w);
    let keys = vec4<u32>(key) + vec4<u32>(0u, 1u, 2u, 3u);
    let seen = (keys >= vec4<u32>(query.seen.x)) & (keys < vec4<u32>(query.seen.y));
    let p = select(vec4<f32>(0.0), exp(vec4<f32>(a.x, b.x, c.x, d.x) - query.lse), seen);
    let ds = p * (dp * query.unit - query.delta) * vec4<f32>(a.y, b.y, c.y, d.y);
    return Slopes(halves(select(vec4<f32>(0.0), ds, seen) / SLOPE), halves(p * query.unit / WEIGHT));
}

fn stage_dy(tile: Queries, slice: u32, lid: u32) {
    for (var i = lid; i < QUERIES * QUADS; i += WG) { //~ surplus: comparison
        let row = i / QUADS;
        let quad = i % QUADS;
        let value = dy[place(tile, row) * (HEAD / 4u) + slice * QUADS + quad];
        qs[(QUERIES + row) * WIDE + quad] = select(vec4<f16>(), value, exists(tile, row));
    }
}

fn stage_v(key0: u32, end: u32, kv_head: u32, slice: u32, lid: u32) {
    for (var i = lid; i < KEYS * QUADS; i += WG) { //~ surplus: comparison
        let row = i / QUADS;
        let quad = i % QUADS;
        let at = (min(key0 + row, end - 1u) * params.kv_heads + kv_head) * (HEAD / 4u); //~ dropped: sign
        ks[(KEYS + row) * WIDE + quad] = select(vec4<f16>(), halves(v[at + slice * QUADS + quad]), key0 + row < end); //~ weightless: comparison
    }
}
