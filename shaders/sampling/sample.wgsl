// y[o] = (id, ln p(id)): the id drawn from `logits` at the row's position, and p that of `raw`
// logits (penalized, read as bits) and raw [rows, vocab] f32; tokens [S, capacity] gets the id at
// position + 1, if that is inside. Three filters keep logits, in this order. top_k keeps logits at
// or above the k-th largest. top_p keeps a logit if the larger ones hold less than top_p of the
// remaining mass. min_p keeps logits of at least max + ln(min_p). Then the largest logit /
// temperature + Gumbel noise is drawn; without a temperature, the largest logit. Filters keep ties.
// Of equal scores, the lowest id wins.
// One workgroup per row, after sample_scan.wgsl has read the whole row. The strips have the largest
// logit and the sum, and tell where the candidates are. The whole row is read again only where the
// list of candidates does not decide. Sources: see cpu-ref's sample.rs and sample_threshold.rs.
// Needs: SampleParams (sampling.wgsl), order_key, NAN_KEY, first_of, best_of, key_value
// (order.wgsl), found, MOST, ROOM (largest.wgsl), workgroup_number (grid.wgsl), strip,
// list_from_strips (strips.wgsl), reduce_max, reduce_add, reduce_add4 (reduce.wgsl), gumbel,
// threefry2x32 (threefry.wgsl). Gives: WG, key_at, strips, params.strips, params.per_thread,
// params.vocab.
struct Params { vocab: u32, rows: u32, capacity: u32, strips: u32, per_thread: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<u32>;
@group(0) @binding(2) var<storage, read> raw: array<f32>;
@group(0) @binding(3) var<storage, read> sampling: array<SampleParams>;
@group(0) @binding(4) var<storage, read> strips: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> tokens: array<u32>;
@group(0) @binding(6) var<storage, read_write> y: array<u32>;

const WG = 256u;
const LOWEST = -3.4028234e38;
var<workgroup> agreed: u32;

// The items of a pass: the list of candidates, or the row that starts at `base`.
struct Items { listed: bool, base: u32, count: u32 }

fn key_at(i: u32) -> u32 {
    return order_key(logits[i]);
}

// (key, id) of an item.
fn item(items: Items, i: u32) -> vec2<u32> {
    if (items.listed) {
        return found[i];
    }
    return vec2<u32>(key_at(items.base + i), i);
}

@compute @workgroup_size(WG)
fn sample(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let s = sampling[row];
    let base = row * params.vocab;
    var best = vec2<u32>(NAN_KEY, 0xffffffffu);
    var raw_top = LOWEST;
    var raw_sum = 0.0;
    // The entry after the row's strips: its position and its sequence.
    let place = strip(row, params.strips);
    // Four strips at a time, so that their loads overlap. Past the end the last strip is read
    // again: it changes no maximum, and its sum counts as 0.
    for (var i = lid; i < params.strips; i += 4u * WG) { //~ clamped: comparison
        let each = i + vec4<u32>(0u, 1u, 2u, 3u) * WG;
        let at = min(each, vec4<u32>(params.strips - 1u));
        let a = strip(row, at.x);
        let b = strip(row, at.y);
        let c = strip(row, at.z);
        let d = strip(row, at.w);
        best = first_of(best, first_of(first_of(a.xy, b.xy), first_of(c.xy, d.xy)));
        let tops = bitcast<vec4<f32>>(vec4<u32>(a.z, b.z, c.z, d.z));
        let sums = select(vec4<f32>(0.0), bitcast<vec4<f32>>(vec4<u32>(a.w, b.w, c.w, d.w)), each < vec4<u32>(params.strips));
        let higher = max(raw_top, max(max(tops.x, tops.y), max(tops.z, tops.w))); //~ cancels: minimum, component
        raw_sum = raw_sum * exp(raw_top - higher) + dot(sums, exp(tops - higher));
        raw_top = higher;
    }
    best = best_of(best, lid);
    let top = reduce_max(raw_top, lid);
    let sum = reduce_add(raw_sum * exp(raw_top - top), lid);
    if (s.temperature > 0.0) {
        best = draw(s, row, best, place.x, lid);
    }
    if (lid == 0u) {
        let next = place.x + 1u;
        if (next < params.capacity) {
            tokens[place.y * params.capacity + next] = best.y;
        }
        y[2u * row] = best.y;
        y[2u * row + 1u] = bitcast<u32>((raw[base + best.y] - top) - log(sum));
    }
}

// The item with the largest score among the items that the filters keep. `best` is the largest
// logit.
fn draw(s: SampleParams, row: u32, best: vec2<u32>, position: u32, lid: u32) -> vec2<u32> {
    let base = row * params.vocab;
    let top = key_value(best.x);
    var items = Items(false, base, params.vocab);
    var least = NAN_KEY + 1u; //~ never: off by one
    if (s.top_k > 0u || s.top_p < 1.0) { //~ neutral: comparison, guard dropped
        let by_rank = s.top_k > 0u && s.top_k <= MOST; //~ list: off by one
        let count = list_from_strips(row, base, select(MOST, s.top_k, by_rank), lid); //~ list: arms swapped
        let list = Items(count <= ROOM, base, min(count, ROOM)); //~ list: minimum
        if (by_rank && list.listed) {
            items = list;
            least = max(least, found[max(min(s.top_k, count), 1u) - 1u].x);
        } else if (s.top_k > 0u) {
            least = max(least, threshold(base, least, f32(s.top_k), top, false, lid));
        }
        if (s.top_p < 1.0) {
            let wanted = s.top_p * mass(items, least, top, lid);
            var reached = NAN_KEY;
            if (list.listed) {
                reached = listed_threshold(count, least, wanted, top, lid);
            }
            if (reached == NAN_KEY) { //~ list: guard dropped
                reached = threshold(base, least, wanted, top, true, lid);
            } else {
                items = list;
            }
            least = max(least, reached);
        }
    }
    let key = vec2<u32>(s.seed.x ^ (s.sequence * 0x9e3779b9u), s.seed.y);
    let lowest = select(LOWEST, select(log(s.min_p), 0.0, s.min_p >= 1.0), s.min_p > 0.0); //~ meet: comparison
    var chosen = vec2<u32>(NAN_KEY, best.y); //~ never: component
    for (var i = lid; i < items.count; i += WG) {
        let here = item(items, i);
        // Scores are relative to the largest logit, because f32 has the finest steps near 0.
        let logit = key_value(here.x) - top;
        if (here.x >= least && logit >= lowest) {
            let score = logit / s.temperature + gumbel(threefry2x32(key, vec2<u32>(position, here.y)).x);
            chosen = first_of(chosen, vec2<u32>(order_key(bitcast<u32>(score)), here.y));
        }
    }
    return best_of(chosen, lid);
}

// Sum of exp(logit - top) over the items with keys of at least `least`.
fn mass(items: Items, least: u32, top: f32, lid: u32) -> f32 {
    var sum = 0.0;
    for (var i = lid; i < items.count; i += WG) {
        let key = item(items, i).x;
        sum += select(0.0, exp(key_value(key) - top), key >= least);
    }
    return reduce_add(sum, lid);
}

// The largest key for which the elements with at least this key (and at least `least`) have a mass
// of `wanted` or more; NAN_KEY where all of them have less. One thread walks the list, which is
// faster than an exchange between threads.
fn listed_threshold(count: u32, least: u32, wanted: f32, top: f32, lid: u32) -> u32 {
    if (lid == 0u) {
        agreed = NAN_KEY;
        var sum = 0.0;
        for (var i = 0u; i < count && found[i].x >= least && agreed == NAN_KEY; i++) { //~ zeros: comparison
            sum += exp(key_value(found[i].x) - top); //~ list: sign, component
            agreed = select(NAN_KEY, found[i].x, sum >= wanted); //~ small: comparison
        }
    }
    return workgroupUniformLoad(&agreed);
}

// The largest key for which the elements of the whole row with at least this key (and at least
// `least`) reach `wanted`, by mass or by number of elements. A sum of 0 never reaches `wanted`. The
// function finds four bits of the key at a time with 16 sums. The last sum only fills the vector.
fn threshold(base: u32, least: u32, wanted: f32, top: f32, by_mass: bool, lid: u32) -> u32 {
    var key = 0u; //~ free: off by one
    for (var shift = 32u; shift > 0u; shift -= 4u) {
        var sums = array<vec4<f32>, 4>();
        for (var i = lid; i < params.vocab; i += WG) {
            let here = key_at(base + i);
            if (here >= max(key, least)) { //~ meet: comparison
                let digit = (here - key) >> (shift - 4u);
                let weight = select(1.0, exp(key_value(here) - top), by_mass);
                for (var q = 0u; q < 4u; q++) {
                    let digits = 4u * q + vec4<u32>(1u, 2u, 3u, 4u);
                    sums[q] += select(vec4<f32>(0.0), vec4<f32>(weight), vec4<u32>(digit) >= digits);
                }
            }
        }
        for (var q = 0u; q < 4u; q++) {
            let sum = reduce_add4(sums[q], lid);
            let reached = select(vec4<u32>(0u), vec4<u32>(1u), (sum >= vec4<f32>(wanted)) & (sum > vec4<f32>(0.0)));
            key += (reached.x + reached.y + reached.z + reached.w) << (shift - 4u);
        }
    }
    if (lid == 0u) {
        agreed = key;
    }
    return workgroupUniformLoad(&agreed);
}
