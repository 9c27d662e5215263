// The derivatives of attention by the scores of a tile, and the weights of its keys, from the
// products that tile32_scores.wgsl left. This piece also stages the rows of dy and of v for these
// products, in f16, divided by the scales of their rows. A derivative is stored divided by the
// largest scale of dy, the largest scale of v, the scale of scores, and SLOPE. So 512 products of
// numbers below 2^14, and delta, fit f16. A weight is stored divided by WEIGHT. (Dao 2023, arXiv
// 2307.08691, algorithm 2.)
// Needs: KEYS, step_rows, WG, dy_scales, v_scales, scores, Queries, place, row_of, keys_seen,
// exists, stats, SCORES, QUERIES, score_slope, params.scale, halves, QUADS, dy, HEAD, qs, WIDE,
// params.kv_heads, ks, v. Gives: SLOPE, WEIGHT, PITCH, Most, largest_scales, query_of, slopes,
// stage_dy, stage_v.
const SLOPE = 4194304.0;
const WEIGHT = 1.0 / 32768.0;
// Pitch of the rows of derivatives and weights, in vectors of four, padded against bank conflicts.
const PITCH = KEYS / 4u + 2u;

// The largest scales of rows of dy and of v, which are powers of two.
struct Most { dy: f32, v: f32 }
// The query of a thread: the keys that the query sees, its log-sum-exp, the scale of its row
// (`unit`) and its delta, both divided by the largest scales, and the largest scale of v.
struct Query { seen: vec2<u32>, lse: f32, unit: f32, delta: f32, most_v: f32 }
struct Slopes { ds: vec4<f16>, p: vec4<f16> }

// The largest scales of the step's rows of dy and of v; 1 if all rows are zeros.
fn largest_scales(lid: u32) -> Most {
    var largest = vec2<f32>(0.0);
    for (var t = lid; t < step_rows[0]; t += WG) {
        largest = max(largest, vec2<f32>(dy_scales[t], v_scales[t]));
    }
    scores[lid] = vec4<f32>(largest, 0.0, 0.0);
    workgroupBarrier();
    for (var i = 0u; i < WG; i++) { //~ neutral: comparison
        largest = max(largest, scores[i].xy);
    }
    largest = select(largest, vec2<f32>(1.0), largest == vec2<f32>(0.0));
    return Most(largest.x, largest.y);
}

fn query_of(tile: Queries, i: u32, most: Most) -> Query {
    let at = place(tile, i);
    let t = row_of(tile, i);
    let seen = select(vec2<u32>(), keys_seen(t), exists(tile, i));
    return Query(seen, stats[2u * at], dy_scales[t] / most.dy, stats[2u * at + 1u] / most.dy / most.v, most.v);
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
    let at = min(keys, vec4<u32>(step_rows[0] - 1u)); //~ dropped: sign
    let units = query.unit * (vec4<f32>(v_scales[at.x], v_scales[at.y], v_scales[at.z], v_scales[at.w]) / query.most_v);
    let ds = p * (dp * units - query.delta) * vec4<f32>(a.y, b.y, c.y, d.y) / (SLOPE * params.scale);
    return Slopes(halves(select(vec4<f32>(0.0), ds, seen)), halves(p * query.unit / WEIGHT));
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
        let at = (min(key0 + row, end - 1u) * params.kv_heads + kv_head) * (HEAD / 4u);
        ks[(KEYS + row) * WIDE + quad] = select(vec4<f16>(), v[at + slice * QUADS + quad], key0 + row < end); //~ weightless: comparison
    }
}
