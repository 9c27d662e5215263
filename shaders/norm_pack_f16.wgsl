// h[t] = a[t] + b[t];   scales[t], halves[t] = h[t, d] / sqrt(mean_d h[t, d]^2 + eps) w[d] in f16, as pack_f16.wgsl packs rows
// a, b, h [rows, dim] f32 (b and h not touched when has_add = 0), w [dim] f32 (not read when has_weight = 0), dim a multiple of 4, scales [rows]
// f32, halves in the order of its pitches. Rows are reckoned 2^-32 times their size, so that squares do not overflow. One workgroup per row,
// whose threads hold two quads of it each; those past that are made twice.
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

// A quad of the sum, by SIZE; past the row's end, of nothing.
fn summed(row: u32, quad: u32) -> vec4<f32> {
    let quads = params.dim >> 2u;
    if (quad >= quads) {
        return vec4<f32>(0.0);
    }
    let at = row * quads + quad;
    var v = a[at];
    if (params.has_add == 1u) {
        v += b[at];
        h[at] = v;
    }
    return v * SIZE;
}

fn weighted(v: vec4<f32>, quad: u32) -> vec4<f32> {
    if (params.has_weight == 1u) {
        return v * w[min(quad, (params.dim >> 2u) - 1u)];
    }
    return v;
}

fn store(row: u32, quad: u32, v: vec4<f32>) {
    if (quad < (params.dim >> 2u)) {
        halves[row * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u)] = halves_of_quad(v);
    }
}

@compute @workgroup_size(WG)
fn norm_pack_f16(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = params.dim >> 2u;
    let first = summed(row, lid);
    let second = summed(row, lid + WG);
    let near = weighted(first, lid);
    let far = weighted(second, lid + WG);
    var squares = dot(first, first) + dot(second, second);
    var most = max(abs(near), abs(far));
    for (var quad = lid + 2u * WG; quad < quads; quad += WG) {
        let v = summed(row, quad);
        squares += dot(v, v);
        most = max(most, abs(weighted(v, quad)));
    }
    let both = reduce_add_max(vec2<f32>(squares, max(max(most.x, most.y), max(most.z, most.w))), lid);
    let factor = inverseSqrt(both.x / f32(params.dim) + params.eps * SIZE * SIZE);
    let scale = half_scale(both.y * factor);
    if (lid == 0u) {
        scales[row] = scale;
    }
    let by = factor / scale;
    store(row, lid, near * by);
    store(row, lid + WG, far * by);
    for (var quad = lid + 2u * WG; quad < quads; quad += WG) {
        store(row, quad, weighted(summed(row, quad), quad) * by);
    }
}
