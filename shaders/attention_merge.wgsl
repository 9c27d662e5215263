// y[t, n] = sum_s e^(m_s - m) a_s / sum_s e^(m_s - m) l_s with m = max_s m_s, over the parts (a, m, l) that attention_split.wgsl left
// partial [rows, heads, splits, head_dim + 4] f32, y [rows, heads, head_dim] f32; positions, ends [rows] u32 tell which parts hold keys; at most
// 64 splits. One workgroup per row and head: a thread per quad of the head, or several, each for every so many parts.
struct Params { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;

const WG = 128u;
const LOWEST = -3.0e38;
var<workgroup> factors: array<f32, 64>;
var<workgroup> gathered: array<vec4<f32>, WG>;

@compute @workgroup_size(WG)
fn attention_merge(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let t = number / params.heads;
    if (t >= params.rows) {
        return;
    }
    let quads = params.head_dim >> 2u;
    let pitch = quads + 1u;
    let start = number * params.splits * pitch;
    let parts = attention_parts(ends[t] + params.causal, positions[t] + 1u, params.window, params.splits);
    let quad = lid % quads;
    let sharing = WG / quads;
    let first = lid / quads;
    // The first four parts of every thread at once, before it is known what they weigh: so that their loads are under way together.
    let last = params.splits - 1u;
    let a0 = partial[start + min(first, last) * pitch + quad];
    let a1 = partial[start + min(first + sharing, last) * pitch + quad];
    let a2 = partial[start + min(first + 2u * sharing, last) * pitch + quad];
    let a3 = partial[start + min(first + 3u * sharing, last) * pitch + quad];
    // (maximum, sum of weights) of the part of every thread that has one.
    let own = select(vec2<f32>(LOWEST, 0.0), partial[start + min(lid, last) * pitch + quads].xy, lid < parts);
    let factor = exp(own.x - reduce_max(own.x, lid));
    if (lid < 64u) {
        factors[lid] = factor;
    }
    let total = reduce_add(select(0.0, factor * own.y, lid < parts), lid);
    // Parts past the last are no numbers: nothing wrote them.
    let mine = select(0u, parts, first < sharing);
    var sum = select(vec4<f32>(0.0), factors[min(first, 63u)] * a0, first < mine);
    sum += select(vec4<f32>(0.0), factors[min(first + sharing, 63u)] * a1, first + sharing < mine);
    sum += select(vec4<f32>(0.0), factors[min(first + 2u * sharing, 63u)] * a2, first + 2u * sharing < mine);
    sum += select(vec4<f32>(0.0), factors[min(first + 3u * sharing, 63u)] * a3, first + 3u * sharing < mine);
    for (var s = first + 4u * sharing; s < mine; s += 4u * sharing) {
        let s1 = min(s + sharing, last);
        let s2 = min(s + 2u * sharing, last);
        let s3 = min(s + 3u * sharing, last);
        let a = partial[start + s * pitch + quad];
        let b = partial[start + s1 * pitch + quad];
        let c = partial[start + s2 * pitch + quad];
        let d = partial[start + s3 * pitch + quad];
        sum += factors[s] * a;
        sum += select(vec4<f32>(0.0), factors[s1] * b, s + sharing < parts);
        sum += select(vec4<f32>(0.0), factors[s2] * c, s + 2u * sharing < parts);
        sum += select(vec4<f32>(0.0), factors[s3] * d, s + 3u * sharing < parts);
    }
    gathered[lid] = sum;
    workgroupBarrier();
    var merged = vec4<f32>(0.0);
    for (var g = 0u; g < sharing; g++) {
        merged += gathered[g * quads + quad];
    }
    merged_store(t, number, quad, lid < quads, merged / total, lid);
}
