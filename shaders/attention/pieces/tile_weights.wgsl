// The softmax of attention_tile.wgsl: PER_ROW threads per query, each with every PER_ROW-th quad of
// a tile's keys.
// Needs: params.scale, params.softcap, seen, tile, SCORE_ROWS, QUADS, LOWEST, SLICE, PER_ROW,
// values, HEAD, shrinks. Gives: Softmax, leave, weights_of, half_of, leave_number, number_of,
// weigh.

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
    let seen = (keys >= vec4<u32>(limits.x)) & (keys < vec4<u32>(limits.y));
    tile[query * SCORE_ROWS + column / QUADS][column % QUADS] = select(vec4<f32>(LOWEST), s, seen);
}

fn weight(s: vec4<f32>, most: f32) -> vec4<f32> {
    return select(vec4<f32>(0.0), exp(s - most), s > vec4<f32>(LOWEST)); //~ weightless: comparison
}

// The weights of four keys of the tile, `key` among them.
fn weights_of(query: u32, key: u32) -> vec4<f32> {
    return tile[query * SCORE_ROWS + key / SLICE][key / 4u % QUADS];
}

// The weights of keys `key` and `key` + 1 among those of four keys.
fn half_of(four: vec4<f32>, key: u32) -> vec2<f32> {
    return select(four.xy, four.zw, (key & 2u) != 0u);
}

// The j-th of this thread's quads of keys.
fn own(query: u32, j: u32, lid: u32) -> vec4<f32> {
    let quad = lid % PER_ROW + j * PER_ROW;
    return tile[query * SCORE_ROWS + quad / QUADS][quad % QUADS];
}

fn leave_own(query: u32, j: u32, lid: u32, weights: vec4<f32>) {
    let quad = lid % PER_ROW + j * PER_ROW;
    tile[query * SCORE_ROWS + quad / QUADS][quad % QUADS] = weights;
}

// Each softmax thread leaves a number for the others in `values`, which is free until the values
// are staged.
fn leave_number(number: f32, lid: u32) {
    values[lid / (HEAD / 4u)][lid % (HEAD / 4u)].x = number;
}

// The number that the i-th softmax thread of a query left.
fn number_of(query: u32, i: u32) -> f32 {
    let at = query * PER_ROW + i;
    return values[at / (HEAD / 4u)][at % (HEAD / 4u)].x;
}

// Turns the scores of a tile into weights relative to the largest score of their query so far.
// Every thread of the workgroup calls.
fn weigh(before: Softmax, lid: u32) -> Softmax {
    let query = lid / PER_ROW;
    let a = own(query, 0u, lid);
    let b = own(query, 1u, lid);
    let c = own(query, 2u, lid);
    let d = own(query, 3u, lid);
    let four = max(max(a, b), max(c, d));
    leave_number(max(max(four.x, four.y), max(four.z, four.w)), lid);
    workgroupBarrier();
    var most = before.most;
    for (var i = 0u; i < PER_ROW; i++) {
        most = max(most, number_of(query, i));
    }
    let shrink = exp(before.most - most);
    shrinks[query] = shrink;
    let e = weight(a, most);
    let f = weight(b, most);
    let g = weight(c, most);
    let h = weight(d, most);
    leave_own(query, 0u, lid, e);
    leave_own(query, 1u, lid, f);
    leave_own(query, 2u, lid, g);
    leave_own(query, 3u, lid, h);
    let sum = (e + f) + (g + h);
    return Softmax(most, before.total * shrink + ((sum.x + sum.y) + (sum.z + sum.w)));
}
