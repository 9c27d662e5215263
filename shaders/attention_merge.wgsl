// y[t, n] = sum_s e^(m_s - m) a_s / sum_s e^(m_s - m) l_s with m = max_s m_s, over the parts (a, m, l) that attention_split.wgsl left
// partial [rows, heads, splits, head_dim + 4] f32, y [rows, heads, head_dim] f32; positions, ends [rows] u32 tell which parts hold keys; at most
// MOST_SPLITS. One workgroup per row, head and CHUNK quads of it, or all where there are less: threads that have the same quad share the parts, and
// add what they have in the end. merged_q8.wgsl and merged_f32.wgsl say how many threads, and write y.
struct Params { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;

const CHUNK = 32u;
const MOST_SPLITS = 64u;
const LOWEST = -3.0e38;
// What each thread has of its quad.
var<workgroup> gathered: array<vec4<f32>, WG>;

// A quad of part `s`, or of the last one.
fn part_of(start: u32, s: u32) -> vec4<f32> {
    return partial[start + min(s, params.splits - 1u) * ((params.head_dim >> 2u) + 1u)];
}

// A quad of four parts, `apart` from each other.
fn parts_at(start: u32, s: u32, apart: u32) -> mat4x4<f32> {
    return mat4x4<f32>(part_of(start, s), part_of(start, s + apart), part_of(start, s + 2u * apart), part_of(start, s + 3u * apart));
}

// Their sum by their factors; those past the last are no numbers, since nothing wrote them.
fn joined(four: mat4x4<f32>, s: u32, apart: u32, parts: u32) -> vec4<f32> {
    let at = vec4<u32>(s, s + apart, s + 2u * apart, s + 3u * apart);
    let inside = at < vec4<u32>(parts);
    let near = min(at, vec4<u32>(MOST_SPLITS - 1u));
    let a = select(vec4<f32>(0.0), four[0] * factors[near.x], inside.x);
    let b = select(vec4<f32>(0.0), four[1] * factors[near.y], inside.y);
    let c = select(vec4<f32>(0.0), four[2] * factors[near.z], inside.z);
    let d = select(vec4<f32>(0.0), four[3] * factors[near.w], inside.w);
    return a + b + (c + d);
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
    let first = lid / chunk;
    let start = number * params.splits * (quads + 1u);
    // As many parts as there may be, so that loads need not wait until it is known how many there are.
    let beside = start + quads;
    let near = part_of(beside, lid & 31u).xy;
    let far = part_of(beside, (lid & 31u) + 32u).xy;
    let four = parts_at(start + quad, first, sharing);
    let more = parts_at(start + quad, first + 4u * sharing, sharing);
    let parts = attention_parts(ends[t] + params.causal, positions[t] + 1u, params.window, params.splits);
    let none = vec2<f32>(LOWEST, 0.0);
    let total = weigh_parts(select(none, near, (lid & 31u) < parts), select(none, far, (lid & 31u) + 32u < parts), lid);
    var sum = joined(four, first, sharing, parts) + joined(more, first + 4u * sharing, sharing, parts);
    for (var s = first + 8u * sharing; s < parts; s += 4u * sharing) {
        sum += joined(parts_at(start + quad, s, sharing), s, sharing, parts);
    }
    gathered[lid] = sum;
    workgroupBarrier();
    var merged = vec4<f32>(0.0);
    for (var g = lid % chunk; g < WG; g += chunk) {
        merged += gathered[g];
    }
    merged_store(t, number, quad, lid < chunk, merged / total, lid);
}
