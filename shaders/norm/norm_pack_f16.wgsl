// h[t] = a[t] + b[t]; scales[t], halves[t] = h[t, d] / sqrt(mean_d h[t, d]^2 + eps) w[d] in f16,
// packed as in pack_f16.wgsl
// a, b, h [rows, dim] f32 (b and h not touched when has_add = 0), w [dim] f32 (not read when
// has_weight = 0), dim a multiple of 4, scales [rows] f32, halves in the order of its pitches. Rows
// are computed at 2^-32 times their size, so squares do not overflow. One workgroup per row. A
// thread holds two quads of the row and computes further quads twice.
// Needs: halves_of_quad, half_scale, kept_scale (half_scale.wgsl), workgroup_number (grid.wgsl),
// reduce_add_max (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, has_add: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> scales: array<f32>;
@group(0) @binding(6) var<storage, read_write> halves: array<vec2<u32>>;

const WG = 512u;
const SIZE = 2.3283064365386963e-10; // 2^-32

fn summed(row: u32, quad: u32) -> vec4<f32> {
    let at = row * (params.dim >> 2u) + quad;
    if (params.has_add == 1u) {
        return a[at] + b[at];
    }
    return a[at];
}

fn weight(quad: u32) -> vec4<f32> {
    if (params.has_weight == 1u) {
        return w[quad];
    }
    return vec4<f32>(1.0);
}

fn keep(row: u32, quad: u32, v: vec4<f32>) {
    if (params.has_add == 1u) { //~ unused: guard dropped
        h[row * (params.dim >> 2u) + quad] = v;
    }
}

fn store(row: u32, quad: u32, v: vec4<f32>) {
    halves[row * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u)] = halves_of_quad(v);
}

@compute @workgroup_size(WG)
fn norm_pack_f16(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = params.dim >> 2u;
    // All loads come before the stores, because a load after a store would wait for it. Threads
    // past the end read the last quad again. Where params are constants, rows of two quads per
    // thread have no such threads and no loops.
    let full = quads >= 2u * WG; //~ meet: comparison, off by one
    let has_near = full || lid < quads;
    let has_far = full || lid + WG < quads;
    let near = select(min(lid, quads - 1u), lid, full); //~ dropped: arms swapped
    let far = select(min(lid + WG, quads - 1u), lid + WG, full); //~ dropped: arms swapped
    var first = summed(row, near);
    var second = summed(row, far);
    let near_weight = weight(near);
    let far_weight = weight(far);
    if (has_near) { //~ clamped: guard dropped
        keep(row, near, first);
    }
    if (has_far) { //~ clamped: guard dropped
        keep(row, far, second);
    }
    first = select(vec4<f32>(0.0), first * SIZE, has_near);
    second = select(vec4<f32>(0.0), second * SIZE, has_far);
    var squares = dot(first, first) + dot(second, second);
    first *= near_weight;
    second *= far_weight;
    var most = max(abs(first), abs(second));
    if (quads > 2u * WG) {
        for (var quad = lid + 2u * WG; quad < quads; quad += WG) {
            let v = summed(row, quad);
            keep(row, quad, v);
            let small = v * SIZE;
            squares += dot(small, small);
            most = max(most, abs(small * weight(quad)));
        }
    }
    let both = reduce_add_max(vec2<f32>(squares, max(max(most.x, most.y), max(most.z, most.w))), lid);
    let factor = inverseSqrt(both.x / f32(params.dim) + params.eps * SIZE * SIZE);
    let scale = half_scale(both.y * factor);
    if (lid == 0u) {
        scales[row] = kept_scale(both.y * factor);
    }
    let by = factor / scale;
    if (has_near) {
        store(row, near, first * by);
    }
    if (has_far) {
        store(row, far, second * by);
    }
    if (quads > 2u * WG) {
        for (var quad = lid + 2u * WG; quad < quads; quad += WG) {
            store(row, quad, summed(row, quad) * SIZE * weight(quad) * by);
        }
    }
}
