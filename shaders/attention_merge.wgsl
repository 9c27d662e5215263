// y[t, n] = sum_s e^(m_s - m) a_s / sum_s e^(m_s - m) l_s with m = max_s m_s, over the parts (a, m, l) that attention_split.wgsl left
// partial [rows, heads, splits, head_dim + 4] f32, y [rows, heads, head_dim] f32; positions, ends [rows] u32 tell which parts hold keys. One
// workgroup per row, head and CHUNK quads of it, or all where there are less: threads that have the same quad share the parts, and join what
// they have in the end. merged_q8.wgsl and merged_f32.wgsl say how many threads, and write y.
struct Params { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;

const CHUNK = 32u;
const LOWEST = -3.0e38;
var<workgroup> gathered: array<vec4<f32>, WG>;
// (maximum, sum of weights) of what each thread has.
var<workgroup> weighed: array<vec2<f32>, WG>;

// Sums relative to a maximum.
struct Joined { most: f32, total: f32, sum: vec4<f32> }

// Four parts more, `apart` from each other; those past `parts` are no numbers, since nothing wrote them.
fn joined(before: Joined, start: u32, quad: u32, s: u32, apart: u32, parts: u32) -> Joined {
    let pitch = (params.head_dim >> 2u) + 1u;
    let last = params.splits - 1u;
    let at = start + pitch * min(vec4<u32>(s, s + apart, s + 2u * apart, s + 3u * apart), vec4<u32>(last));
    let inside = vec4<u32>(s, s + apart, s + 2u * apart, s + 3u * apart) < vec4<u32>(parts);
    let a = partial[at.x + quad];
    let b = partial[at.y + quad];
    let c = partial[at.z + quad];
    let d = partial[at.w + quad];
    let beside = at + pitch - 1u;
    let m = partial[beside.x].xy;
    let n = partial[beside.y].xy;
    let o = partial[beside.z].xy;
    let p = partial[beside.w].xy;
    let tops = select(vec4<f32>(LOWEST), vec4<f32>(m.x, n.x, o.x, p.x), inside);
    let most = max(before.most, max(max(tops.x, tops.y), max(tops.z, tops.w)));
    let shrink = exp(before.most - most);
    let share = select(vec4<f32>(0.0), exp(tops - most), inside);
    let totals = select(vec4<f32>(0.0), share * vec4<f32>(m.y, n.y, o.y, p.y), inside);
    var sum = before.sum * shrink;
    sum += select(vec4<f32>(0.0), share.x * a, inside.x);
    sum += select(vec4<f32>(0.0), share.y * b, inside.y);
    sum += select(vec4<f32>(0.0), share.z * c, inside.z);
    sum += select(vec4<f32>(0.0), share.w * d, inside.w);
    return Joined(most, before.total * shrink + (totals.x + totals.y + (totals.z + totals.w)), sum);
}

@compute @workgroup_size(WG)
fn attention_merge(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let quads = params.head_dim >> 2u;
    let chunk = min(quads, CHUNK);
    let chunks = quads / chunk;
    let place = workgroup_number(id, extents);
    let number = place / chunks;
    let t = number / params.heads;
    if (t >= params.rows) {
        return;
    }
    let quad = place % chunks * chunk + lid % chunk;
    let sharing = WG / chunk;
    let start = number * params.splits * (quads + 1u);
    let parts = attention_parts(ends[t] + params.causal, positions[t] + 1u, params.window, params.splits);
    // As many parts as there may be, so that loads need not wait until it is known how many there are; eight at once where there are many.
    var own = Joined(LOWEST, 0.0, vec4<f32>(0.0));
    if (params.splits <= 4u * sharing) {
        own = joined(own, start, quad, lid / chunk, sharing, parts);
    } else {
        for (var s = lid / chunk; s < params.splits; s += 8u * sharing) {
            own = joined(own, start, quad, s, sharing, parts);
            own = joined(own, start, quad, s + 4u * sharing, sharing, parts);
        }
    }
    gathered[lid] = own.sum;
    weighed[lid] = vec2<f32>(own.most, own.total);
    workgroupBarrier();
    let first = lid % chunk;
    var all = LOWEST;
    for (var g = 0u; g < sharing; g++) {
        all = max(all, weighed[g * chunk + first].x);
    }
    var total = 0.0;
    var merged = vec4<f32>(0.0);
    for (var g = 0u; g < sharing; g++) {
        let share = exp(weighed[g * chunk + first].x - all);
        total += weighed[g * chunk + first].y * share;
        merged += gathered[g * chunk + first] * share;
    }
    merged_store(t, number, quad, lid < chunk, merged / total, lid);
}
