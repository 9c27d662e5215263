// The softmax of attention_tile.wgsl: PER_ROW threads per query, each with every PER_ROW-th quad of
// a tile's keys.
// Needs: params.scale, params.softcap, seen, tile, WEIGHTS, LOWEST, PER_ROW, VALUES,
// shrinks. Gives: Softmax, leave, weigh.

// most: the largest score of a query so far. total: the sum of a thread's weights.
struct Softmax { most: f32, total: f32 }

// Leaves the capped scores of four keys of a query, or LOWEST for keys that the query does not see.
fn leave(product: vec4<f32>, query: u32, column: u32, key0: u32) {
    var s = product * params.scale;
    if (params.softcap > 0.0) {
        // Clamped: some drivers return NaN from tanh of large arguments. tanh(15) rounds to 1.
        s = params.softcap * tanh(clamp(s / params.softcap, vec4<f32>(-15.0), vec4<f32>(15.0)));
    }
    let keys = vec4<u32>(key0 + 4u * column) + vec4<u32>(0u, 1u, 2u, 3u);
    let limits = seen[query];
    tile[query * WEIGHTS + column] = select(vec4<f32>(LOWEST), s, (keys >= vec4<u32>(limits.x)) & (keys < vec4<u32>(limits.y)));
}

fn weight(s: vec4<f32>, most: f32) -> vec4<f32> {
    return select(vec4<f32>(0.0), exp(s - most), s > vec4<f32>(LOWEST)); //~ weightless: comparison
}

// Turns the scores of a tile into weights relative to the largest score of their query so far.
// Every thread of the workgroup calls.
fn weigh(before: Softmax, lid: u32) -> Softmax {
    let query = lid / PER_ROW;
    let at = query * WEIGHTS + lid % PER_ROW;
    let a = tile[at];
    let b = tile[at + PER_ROW];
    let c = tile[at + 2u * PER_ROW];
    let d = tile[at + 3u * PER_ROW];
    let four = max(max(a, b), max(c, d));
    tile[VALUES + lid].x = max(max(four.x, four.y), max(four.z, four.w));
    workgroupBarrier();
    var most = before.most;
    for (var i = 0u; i < PER_ROW; i++) {
        most = max(most, tile[VALUES + query * PER_ROW + i].x);
    }
    let shrink = exp(before.most - most);
    shrinks[query] = shrink;
    let e = weight(a, most);
    let f = weight(b, most);
    let g = weight(c, most);
    let h = weight(d, most);
    tile[at] = e;
    tile[at + PER_ROW] = f;
    tile[at + 2u * PER_ROW] = g;
    tile[at + 3u * PER_ROW] = h;
    let sum = (e + f) + (g + h);
    return Softmax(most, before.total * shrink + ((sum.x + sum.y) + (sum.z + sum.w)));
}
