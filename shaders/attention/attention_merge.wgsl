// y[t, n] = sum_s e^(m_s - m) a_s / sum_s e^(m_s - m) l_s with m = max_s m_s, over the parts (a, m,
// l) of attention_split.wgsl
// partial [rows, heads, splits, head_dim + 4] f32, y [rows, heads, head_dim] f32; positions, ends
// [rows] u32 tell which parts hold keys; at most MOST_SPLITS parts. One workgroup per row, head and
// chunk of quads. The chunk is small enough that no thread has a quad of more than two parts. Sums
// of threads that have the same quad are added at the end. merged_q8.wgsl and merged_f32.wgsl write
// y.
// Needs: attention_part (attention_part.wgsl), workgroup_number (grid.wgsl), weigh_parts,
// part_factor, part_factor_on, parts_beside, parts_add, parts_done (part_weights.wgsl),
// merged_store (merged_f32.wgsl or merged_q8.wgsl). Gives: params.head_dim, MOST_SPLITS, LOWEST,
// params.heads, WG. Bindings of pieces: y (merged_f32.wgsl), packed (merged_q8.wgsl).
struct Params { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;

const WG = 256u;
const MOST_SPLITS = 64u;
// Fewest quads per workgroup: at most 32 threads share a quad.
const LEAST = 8u;
const LOWEST = -3.0e38;
// Sums of each quad.
var<workgroup> gathered: array<vec4<f32>, WG>;

// (maximum, sum of weights) of a part. A part without keys was never written; it counts as (LOWEST,
// 0), which has no weight.
fn weight_of(beside: vec2<f32>, s: u32, t: u32, end: u32) -> vec2<f32> {
    let part = attention_part(end, positions[t] + 1u, params.window, params.splits, s);
    return select(vec2<f32>(LOWEST, 0.0), beside, part.x < part.y);
}

@compute @workgroup_size(WG)
fn attention_merge(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let quads = params.head_dim >> 2u;
    let chunk = max(min(quads, WG >> firstLeadingBit(max(params.splits, 2u) - 1u)), LEAST); //~ rounded: off by one
    let chunks = max(quads / chunk, 1u);
    let place = workgroup_number(id, extents);
    let number = place / chunks;
    let t = number / params.heads;
    if (t >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let sharing = WG / chunk;
    let group = lid / chunk;
    let quad = min(place % chunks * chunk + lid % chunk, quads - 1u);
    let start = number * params.splits * (quads + 1u);
    let last = params.splits - 1u;
    let lane = lid & 31u;
    let near = partial[start + min(lane, last) * (quads + 1u) + quads].xy;
    let far = partial[start + min(lane + 32u, last) * (quads + 1u) + quads].xy;
    let a = partial[start + min(group, last) * (quads + 1u) + quad];
    let b = partial[start + min(group + sharing, last) * (quads + 1u) + quad];
    let end = ends[t] + params.causal;
    let weights = weigh_parts(weight_of(near, lane, t, end), weight_of(far, lane + 32u, t, end), lid);
    let of_a = part_factor(weights, group);
    let of_b = part_factor_on(weights, group, sharing);
    // A part without keys was never written and may hold NaN, so it is skipped.
    let sum = select(vec4<f32>(0.0), a * of_a, of_a > 0.0) + select(vec4<f32>(0.0), b * of_b, of_b > 0.0);
    let beside = parts_beside(chunk);
    let together = parts_add(sum, chunk);
    if (lid % beside < chunk) { //~ apart: comparison, guard dropped
        gathered[lid / beside * chunk + lid % beside] = together;
    }
    workgroupBarrier();
    if (parts_done(chunk, lid)) { //~ exit: guard dropped
        return;
    }
    var merged = vec4<f32>(0.0);
    for (var g = lid % chunk; g < WG / beside * chunk; g += chunk) {
        merged += gathered[g];
    }
    merged_store(t, number, quad, lid < min(chunk, quads), merged * (1.0 / weights.total), lid); //~ twice: minimum
}
