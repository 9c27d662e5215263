// The softmax of attention_flash.wgsl: PER_ROW threads per query, each with every PER_ROW-th quad
// of a tile's keys.
// Needs: KEYS, PER_ROW, WG, QUERIES, params.rows, positions, params.window, ends, params.causal,
// LOWEST, SCORES, scores, SLICES, params.softcap, ps, PITCH, RAISE, raised, BAND, shrinks,
// result_factor, leave_total. Gives: Softmax, is_row, limits, weigh, is_raised, totals.
const TURNS = KEYS / 4u / PER_ROW;
const_assert TURNS <= 4u && (PER_ROW == 2u || PER_ROW == 4u) && WG == PER_ROW * QUERIES;
// most: the reference score of a query's weights. total: the sum of a thread's weights. raised:
// whether the last keys raised the reference, so earlier sums must be scaled.
struct Softmax { most: f32, total: f32, raised: bool }

// Whether query `row` of the workgroup is a row of the step.
fn is_row(row: u32, t0: u32, group: u32, tokens: u32) -> bool {
    return row < tokens * group && t0 + row / group < params.rows;
}

// The first key that the query sees, and one past the last.
fn limits(row: u32, t0: u32, group: u32, tokens: u32) -> vec2<u32> {
    let t = min(t0 + row / group, params.rows - 1u);
    let next = positions[t] + 1u;
    let start = select(0u, next - min(next, params.window), params.window > 0u);
    return vec2<u32>(start, select(0u, ends[t] + params.causal, is_row(row, t0, group, tokens))); //~ surplus: off by one
}

// The capped scores of a quad of keys, or LOWEST for keys that the query does not see.
fn scores_of(row: u32, turn: u32, lane: u32, key0: u32, seen: vec2<u32>) -> vec4<f32> {
    if (turn >= TURNS) {
        return vec4<f32>(LOWEST);
    }
    let quad = lane + turn * PER_ROW;
    let at = row * SCORES + quad;
    var s = scores[at];
    if (SLICES > 1u) { //~ surplus: off by one
        s += scores[at + QUERIES * SCORES];
    }
    if (SLICES > 2u) {
        s += scores[at + 2u * QUERIES * SCORES] + scores[at + 3u * QUERIES * SCORES];
    }
    if (params.softcap > 0.0) {
        // Clamped: some drivers return NaN from tanh of large arguments. tanh(15) rounds to 1.
        s = params.softcap * tanh(clamp(s / params.softcap, vec4<f32>(-15.0), vec4<f32>(15.0)));
    }
    let keys = vec4<u32>(key0 + 4u * quad) + vec4<u32>(0u, 1u, 2u, 3u);
    return select(vec4<f32>(LOWEST), s, (keys >= vec4<u32>(seen.x)) & (keys < vec4<u32>(seen.y)));
}

// Stores the weights of a quad of keys and returns their sum.
fn weight(row: u32, turn: u32, lane: u32, s: vec4<f32>, most: f32) -> f32 {
    if (turn >= TURNS) {
        return 0.0;
    }
    let p = select(vec4<f32>(0.0), exp(s - most), s > vec4<f32>(LOWEST));
    ps[row * PITCH + lane + turn * PER_ROW] = vec4<f16>(p);
    return (p.x + p.y) + (p.z + p.w);
}

// Weighs the keys of a tile, from the scores that the slices left.
fn weigh(before: Softmax, row: u32, lane: u32, key0: u32, seen: vec2<u32>) -> Softmax {
    let s0 = scores_of(row, 0u, lane, key0, seen);
    let s1 = scores_of(row, 1u, lane, key0, seen);
    let s2 = scores_of(row, 2u, lane, key0, seen);
    let s3 = scores_of(row, 3u, lane, key0, seen);
    let largest = max(max(s0, s1), max(s2, s3));
    var tile_most = max(max(largest.x, largest.y), max(largest.z, largest.w));
    tile_most = max(tile_most, subgroupShuffleXor(tile_most, 1u));
    if (PER_ROW > 2u) { //~ seen: comparison, guard dropped
        tile_most = max(tile_most, subgroupShuffleXor(tile_most, 2u)); //~ alike: off by one
    }
    let raise = tile_most > before.most + RAISE; //~ cancels: sign, comparison
    let most = select(before.most, tile_most, raise);
    let shrink = exp(before.most - most);
    let scaled = raise && before.most > LOWEST; //~ neutral: comparison
    if (SLICES > 1u && scaled) { //~ neutral: guard dropped, comparison
        raised[row / BAND] = 1u;
    }
    shrinks[row] = shrink;
    let near = weight(row, 0u, lane, s0, most) + weight(row, 1u, lane, s1, most);
    let far = weight(row, 2u, lane, s2, most) + weight(row, 3u, lane, s3, most);
    return Softmax(most, before.total * shrink + (near + far), scaled);
}

// 1 if sums of a band must be scaled. A subgroup that has its band alone also has the band's
// queries in the softmax.
fn is_raised(softmax: Softmax, band: u32) -> u32 {
    if (SLICES > 1u) {
        return raised[band];
    }
    return u32(subgroupAny(softmax.raised));
}

// Stores the factor of the results of a query. `place` is the offset of the results, in vectors of
// four.
fn totals(softmax: Softmax, row: u32, lane: u32, within: bool, place: u32) {
    var total = softmax.total;
    total += subgroupShuffleXor(total, 1u);
    if (PER_ROW > 2u) { //~ seen: comparison, guard dropped
        total += subgroupShuffleXor(total, 2u); //~ alike: off by one
    }
    shrinks[row] = result_factor(total);
    leave_total(softmax.most, total, lane, within, place);
}
