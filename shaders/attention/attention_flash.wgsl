// y[t, n] = sum_s p[s] v[s], p = softmax_s(cap(scale q[t, n] . k[s])), as in attention.wgsl, for
// many rows, with cooperative matrices
// The operands are as in attention.wgsl. Products are of f16 with f32 sums. One workgroup has up to
// QUERIES queries: neighbouring rows with all heads that share a kv head. It walks their keys, KEYS
// at a time, and loads the next keys (if EARLY, their values, too) meanwhile. The keys of several
// sequences follow one another. A subgroup has SLICE columns of the head for BAND queries: their
// part of the scores, and these columns of the results. Weights are relative to a reference score
// of the query, raised only where a score exceeds it by RAISE, so sums are rarely scaled (as in
// FlashAttention-4). flash_whole.wgsl writes results; flash_part.wgsl gives a workgroup one of
// params.splits parts of the keys, and attention_merge_parts.wgsl joins the parts.
// Needs: HEAD, SLICE, QUERIES, BAND, KEYS, GAP, EARLY (the variant), limits, Softmax, weigh,
// is_raised, totals, is_row (flash_scores.wgsl), queries, Queries, Column, Scores, score,
// leave_scores, shrunk, weights, add, finish (flash_bands.wgsl), keys_of_part, result_place (slot
// keys), load_k, Values, load_v, stage_k, stage_v (flash_keys.wgsl). Gives: kv, q, params.scale,
// LARGEST, WIDE, SCORES, scores, ps, PITCH, shrinks, y, WG, params.capacity, params.kv_heads,
// PER_ROW, params.rows, positions, params.window, ends, params.causal, LOWEST, SLICES,
// params.softcap, RAISE, raised, params.splits.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { heads: u32, kv_heads: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> y: array<vec4<f32>>;

const SLICES = HEAD / SLICE;
const WG = 32u * SLICES * (QUERIES / BAND);
// Softmax threads per query.
const PER_ROW = min(WG / QUERIES, KEYS / 4u);
// Pitches of rows in workgroup memory, in vectors of four, padded against bank conflicts.
const WIDE = HEAD / 4u + 2u;
const PITCH = KEYS / 4u + 2u;
const SCORES = KEYS / 4u + GAP;
const LOWEST = -3.0e38;
// A weight is at most e^10. Rounded to f16 it is still below the largest f16.
const RAISE = 10.0;
const LARGEST = vec4<f32>(65504.0);
// In eights, so that stores have 16 bytes.
var<workgroup> kv: array<mat2x4<f16>, max(KEYS * WIDE, WG * BAND / 8u) / 2u>;
var<workgroup> ps: array<vec4<f16>, QUERIES * PITCH>;
// Every slice's part of the scores; later sums that are scaled or written.
var<workgroup> scores: array<vec4<f32>, SLICES * QUERIES * SCORES>;
// shrinks: factors of the queries' sums. raised: whether sums of a band must be scaled; only bands
// of several subgroups use it.
var<workgroup> shrinks: array<f32, QUERIES>;
var<workgroup> raised: array<u32, QUERIES / BAND>;

// Start of the head of the workgroup's query `row` in q and y, in vectors of four.
fn place(row: u32, t0: u32, group: u32, kv_head: u32) -> u32 {
    return (min(t0 + row / group, params.rows - 1u) * params.heads + kv_head * group + row % group) * (HEAD / 4u); //~ dropped: sign
}

@compute @workgroup_size(WG)
fn attention_flash(
    @builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>,
    @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32
) {
    let lane = lid & 31u;
    let group = params.heads / params.kv_heads;
    let tokens = QUERIES / group;
    let kv_head = id.x / params.splits;
    let split = id.x % params.splits;
    // Rows that see the most keys start first.
    let t0 = (extents.y - 1u - id.y) * tokens;
    let band0 = subgroup / SLICES * BAND;
    let column = subgroup % SLICES * (SLICE / 4u);
    let region_of_scores = (subgroup % SLICES * QUERIES + band0) * SCORES;
    // This thread's query in the softmax, which has PER_ROW threads per query.
    let row = lid / PER_ROW;
    let seen = limits(row, t0, group, tokens);
    let starts = vec4<u32>(
        place(band0 + (lane >> 2u), t0, group, kv_head), place(band0 + 8u + (lane >> 2u), t0, group, kv_head),
        place(band0 + 16u + (lane >> 2u), t0, group, kv_head), place(band0 + 24u + (lane >> 2u), t0, group, kv_head)) + column + (lane & 3u);
    let region = subgroup * BAND * 4u; //~ free: off by one
    let q0 = queries(starts, region, lane);
    let q1 = queries(starts + 4u, region, lane);
    let q2 = queries(starts + 8u, region, lane);
    let q3 = queries(starts + 12u, region, lane);
    var q4: Queries;
    var q5: Queries;
    var q6: Queries;
    var q7: Queries;
    if (SLICE > 64u) {
        q4 = queries(starts + 16u, region, lane);
        q5 = queries(starts + 20u, region, lane);
        q6 = queries(starts + 24u, region, lane);
        q7 = queries(starts + 28u, region, lane);
    }
    var softmax = Softmax(LOWEST, 0.0, false);
    var o0 = Column();
    var o1 = Column();
    var o2 = Column();
    var o3 = Column();
    var o4 = Column();
    var o5 = Column();
    var o6 = Column();
    var o7 = Column();
    let count = min(tokens, params.rows - t0); //~ weightless: sign, minimum
    // The bounds are read from the operands, because then they are known to be uniform.
    for (var first = 0u; first < count;) { //~ empty: comparison
        let owner = sequences[t0 + first];
        var past = first;
        var from_key = 0xffffffffu;
        var to_key = 0u; //~ never: off by one
        while (past < count && sequences[min(t0 + past, params.rows - 1u)] == owner) { //~ weightless: comparison
            let next = positions[t0 + past] + 1u; //~ weightless: sign
            from_key = min(from_key, select(0u, next - min(next, params.window), params.window > 0u)); //~ weightless: off by one
            let end = ends[t0 + past];
            to_key = max(to_key, end + params.causal); //~ endless: sign
            past++;
        }
        let mine = vec2<u32>(seen.x, select(0u, seen.y, row / group >= first && row / group < past));
        let base = owner * params.capacity;
        let last = max(to_key, 1u) - 1u; //~ weightless: sign, off by one
        let part = keys_of_part(min(from_key, to_key), to_key, split);
        var slot = part.x % params.capacity;
        var keys = load_k(base, slot, last - min(part.x, last), kv_head, lid); //~ weightless: sign
        var values: Values;
        if (EARLY > 0u) {
            values = load_v(base, slot, last - min(part.x, last), kv_head, lid); //~ weightless: sign
        }
        for (var key0 = part.x; key0 < part.y; key0 += KEYS) { //~ seen: comparison
            workgroupBarrier();
            stage_k(keys, lid);
            if (SLICES > 1u && lid < QUERIES / BAND) { //~ clamped: product, comparison, off by one, guard dropped
                raised[lid] = 0u; //~ neutral: off by one
            }
            workgroupBarrier();
            let next = slot + KEYS;
            let after = next - select(0u, params.capacity, next >= params.capacity); //~ meet: comparison
            let rest = max(last, key0 + KEYS) - (key0 + KEYS); //~ weightless: sign
            if (EARLY > 0u) {
                keys = load_k(base, after, rest, kv_head, lid);
            } else {
                values = load_v(base, slot, last - key0, kv_head, lid); //~ weightless: sign
            }
            var s = Scores();
            s = score(s, q0, column);
            s = score(s, q1, column + 4u);
            s = score(s, q2, column + 8u);
            s = score(s, q3, column + 12u);
            if (SLICE > 64u) {
                s = score(s, q4, column + 16u);
                s = score(s, q5, column + 20u);
                s = score(s, q6, column + 24u);
                s = score(s, q7, column + 28u);
            }
            leave_scores(s, region_of_scores);
            workgroupBarrier();
            stage_v(values, lid);
            if (EARLY > 0u) {
                values = load_v(base, after, rest, kv_head, lid);
            } else {
                keys = load_k(base, after, rest, kv_head, lid);
            }
            slot = after;
            softmax = weigh(softmax, row, lid % PER_ROW, key0, mine);
            workgroupBarrier();
            // The body runs once or not at all, for a whole subgroup. It is a loop because naga
            // accepts the condition of a loop as uniform, but not the condition of a branch on a
            // variable. Drivers do not know the count either, so they do not unroll the outer loop.
            // The unrolled code would no longer fit the instruction cache.
            let changed = is_raised(softmax, band0 / BAND);
            for (var times = 0u; times < changed; times++) {
                o0 = shrunk(o0, region_of_scores, band0, lane);
                o1 = shrunk(o1, region_of_scores, band0, lane);
                o2 = shrunk(o2, region_of_scores, band0, lane);
                o3 = shrunk(o3, region_of_scores, band0, lane);
                if (SLICE > 64u) {
                    o4 = shrunk(o4, region_of_scores, band0, lane);
                    o5 = shrunk(o5, region_of_scores, band0, lane);
                    o6 = shrunk(o6, region_of_scores, band0, lane);
                    o7 = shrunk(o7, region_of_scores, band0, lane);
                }
            }
            let p = weights(band0);
            o0 = add(o0, p, column);
            o1 = add(o1, p, column + 4u);
            o2 = add(o2, p, column + 8u);
            o3 = add(o3, p, column + 12u);
            if (SLICE > 64u) {
                o4 = add(o4, p, column + 16u);
                o5 = add(o5, p, column + 20u);
                o6 = add(o6, p, column + 24u);
                o7 = add(o7, p, column + 28u);
            }
        }
        first = max(past, first + 1u); //~ twice: minimum
    }
    workgroupBarrier();
    totals(softmax, row, lid % PER_ROW, is_row(row, t0, group, tokens), result_place(place(row, t0, group, kv_head), split));
    workgroupBarrier();
    let upper = band0 + (lane >> 1u);
    let places = vec2<u32>(
        result_place(place(upper, t0, group, kv_head), split), result_place(place(upper + 16u, t0, group, kv_head), split));
    let at = places + column + 2u * (lane & 1u);
    let within = vec2<bool>(is_row(upper, t0, group, tokens), is_row(upper + 16u, t0, group, tokens));
    finish(o0, region_of_scores, band0, lane, at, within);
    finish(o1, region_of_scores, band0, lane, at + 4u, within);
    finish(o2, region_of_scores, band0, lane, at + 8u, within);
    finish(o3, region_of_scores, band0, lane, at + 12u, within);
    if (SLICE > 64u) {
        finish(o4, region_of_scores, band0, lane, at + 16u, within);
        finish(o5, region_of_scores, band0, lane, at + 20u, within);
        finish(o6, region_of_scores, band0, lane, at + 24u, within);
        finish(o7, region_of_scores, band0, lane, at + 28u, within);
    }
}
