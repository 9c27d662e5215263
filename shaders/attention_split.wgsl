// partial[t, n, s] = (sum_j e^(p_j - m) v_j, m, sum_j e^(p_j - m)) with p_j = cap(scale q[t, n] . k_j) and m = max_j p_j, over the s-th part of the keys
// of attention.wgsl, whose operands these are; attention_merge.wgsl joins the parts. One workgroup for HEADS heads that share their keys and for
// one part: `lanes` threads to a key, each with 16 elements of the head, quads `lanes` apart; every group of lanes keeps a maximum of its own.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, exchange: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> partial: array<f32>;

const WG = 128u;
const LOWEST = -3.0e38;
var<workgroup> gathered: array<vec4<f32>, 4u * WG>;

// Elements are matrices of four quads, and heads are components and variables: loops over arrays of them would leave registers.
fn dot_16(a: mat4x4<f32>, b: mat4x4<f32>) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + (dot(a[2], b[2]) + dot(a[3], b[3]));
}

fn query_of(at: u32, lanes: u32) -> mat4x4<f32> {
    return mat4x4<f32>(q[at], q[at + lanes], q[at + 2u * lanes], q[at + 3u * lanes]);
}

fn key_of(row: u32, width: u32, at: u32, lanes: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        k_state_load4(row, width, at), k_state_load4(row, width, at + lanes),
        k_state_load4(row, width, at + 2u * lanes), k_state_load4(row, width, at + 3u * lanes));
}

fn value_of(row: u32, width: u32, at: u32, lanes: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        v_state_load4(row, width, at), v_state_load4(row, width, at + lanes),
        v_state_load4(row, width, at + 2u * lanes), v_state_load4(row, width, at + 3u * lanes));
}

// cap(scale * sum), or the lowest number for a key past the part.
fn score(sums: vec4<f32>, inside: bool) -> vec4<f32> {
    var s = sums * params.scale;
    if (params.softcap > 0.0) {
        // Drivers return NaN from tanh of large arguments; 15 is past the last f32 below one.
        s = params.softcap * tanh(clamp(s / params.softcap, vec4<f32>(-15.0), vec4<f32>(15.0)));
    }
    return select(vec4<f32>(LOWEST), s, inside);
}

// Sums this head's values over the groups and writes its part.
fn finish(acc: mat4x4<f32>, start: u32, most: f32, total: f32, lanes: u32, lid: u32) {
    workgroupBarrier();
    gathered[lid] = acc[0];
    gathered[WG + lid] = acc[1];
    gathered[2u * WG + lid] = acc[2];
    gathered[3u * WG + lid] = acc[3];
    workgroupBarrier();
    let quads = params.head_dim >> 2u;
    if (lid < quads) {
        let column = lid / lanes * WG + lid % lanes;
        var value = gathered[column];
        for (var g = lanes; g < WG; g += lanes) {
            value += gathered[column + g];
        }
        let at = start + 4u * lid;
        partial[at] = value.x;
        partial[at + 1u] = value.y;
        partial[at + 2u] = value.z;
        partial[at + 3u] = value.w;
    }
    if (lid == 0u) {
        partial[start + params.head_dim] = most;
        partial[start + params.head_dim + 1u] = total;
    }
}

@compute @workgroup_size(WG)
fn attention_split(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let sets = params.heads / HEADS;
    let t = number / (sets * params.splits);
    if (t >= params.rows) {
        return;
    }
    let split = number % params.splits;
    let first_head = t * params.heads + (number / params.splits) % sets * HEADS;
    let quads = params.head_dim >> 2u;
    let lanes = quads >> 2u;
    let lane = lid % lanes;
    let groups = WG / lanes;
    let width = params.kv_heads * params.head_dim;
    let base = sequences[t] * params.capacity;
    let part = attention_part(ends[t] + params.causal, positions[t] + 1u, params.window, params.splits, split);
    if (part.x >= part.y) {
        return;
    }
    let quad = (first_head - t * params.heads) / (params.heads / params.kv_heads) * quads + lane;
    let q0 = query_of(first_head * quads + lane, lanes);
    let q1 = query_of((first_head + min(1u, HEADS - 1u)) * quads + lane, lanes);
    let q2 = query_of((first_head + min(2u, HEADS - 1u)) * quads + lane, lanes);
    let q3 = query_of((first_head + min(3u, HEADS - 1u)) * quads + lane, lanes);
    var acc0 = mat4x4<f32>();
    var acc1 = mat4x4<f32>();
    var acc2 = mat4x4<f32>();
    var acc3 = mat4x4<f32>();
    var most = vec4<f32>(LOWEST);
    var total = vec4<f32>(0.0);
    for (var tile = part.x; tile < part.y; tile += 2u * groups) {
        // Two keys at once, so that their loads are under way together.
        let near = tile + lid / lanes;
        let far = near + groups;
        let near_row = base + min(near, part.y - 1u) % params.capacity;
        let far_row = base + min(far, part.y - 1u) % params.capacity;
        let near_key = key_of(near_row, width, quad, lanes);
        let far_key = key_of(far_row, width, quad, lanes);
        let near_value = value_of(near_row, width, quad, lanes);
        let far_value = value_of(far_row, width, quad, lanes);
        var near_sum = vec4<f32>(dot_16(q0, near_key), 0.0, 0.0, 0.0);
        var far_sum = vec4<f32>(dot_16(q0, far_key), 0.0, 0.0, 0.0);
        if (HEADS > 1u) {
            near_sum.y = dot_16(q1, near_key);
            far_sum.y = dot_16(q1, far_key);
        }
        if (HEADS > 2u) {
            near_sum.z = dot_16(q2, near_key);
            near_sum.w = dot_16(q3, near_key);
            far_sum.z = dot_16(q2, far_key);
            far_sum.w = dot_16(q3, far_key);
        }
        let s = score(lanes_add4(near_sum, lanes, lid), near < part.y);
        let z = score(lanes_add4(far_sum, lanes, lid), far < part.y);
        let new_most = max(most, max(s, z));
        let shrink = exp(most - new_most);
        let p = select(vec4<f32>(0.0), exp(s - new_most), near < part.y);
        let r = select(vec4<f32>(0.0), exp(z - new_most), far < part.y);
        most = new_most;
        total = total * shrink + p + r;
        acc0 = acc0 * shrink.x + near_value * p.x + far_value * r.x;
        if (HEADS > 1u) {
            acc1 = acc1 * shrink.y + near_value * p.y + far_value * r.y;
        }
        if (HEADS > 2u) {
            acc2 = acc2 * shrink.z + near_value * p.z + far_value * r.z;
            acc3 = acc3 * shrink.w + near_value * p.w + far_value * r.w;
        }
    }
    // The groups' maxima and sums, of all heads at once.
    gathered[lid] = most;
    gathered[WG + lid] = total;
    workgroupBarrier();
    var all = vec4<f32>(LOWEST);
    for (var g = 0u; g < WG; g += lanes) {
        all = max(all, gathered[g]);
    }
    var sum = vec4<f32>(0.0);
    for (var g = 0u; g < WG; g += lanes) {
        sum += gathered[WG + g] * exp(gathered[g] - all);
    }
    let factor = exp(most - all);
    let pitch = params.splits * (params.head_dim + 2u);
    let start = first_head * pitch + split * (params.head_dim + 2u);
    finish(acc0 * factor.x, start, all.x, sum.x, lanes, lid);
    if (HEADS > 1u) {
        finish(acc1 * factor.y, start + pitch, all.y, sum.y, lanes, lid);
    }
    if (HEADS > 2u) {
        finish(acc2 * factor.z, start + 2u * pitch, all.z, sum.z, lanes, lid);
        finish(acc3 * factor.w, start + 3u * pitch, all.w, sum.w, lanes, lid);
    }
}
