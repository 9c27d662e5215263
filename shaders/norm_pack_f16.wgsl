// h[t] = a[t] + b[t];   scales[t], halves[t] = h[t, d] / sqrt(mean_d h[t, d]^2 + eps) w[d] in f16, as pack_f16.wgsl packs rows
// a, b, h [rows, dim] f32 (b and h not touched when has_add = 0), w [dim] f32 (not read when has_weight = 0), dim a multiple of 4, scales [rows]
// f32, halves in the order of its pitches. Rows are reckoned 2^-32 times their size, so that squares do not overflow. One workgroup per row.
struct Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, has_add: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> scales: array<f32>;
@group(0) @binding(6) var<storage, read_write> halves: array<vec2<u32>>;

const WG = 256u;
const SIZE = 2.3283064365386963e-10; // 2^-32

@compute @workgroup_size(WG)
fn norm_pack_f16(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = params.dim >> 2u;
    var most = vec4<f32>(0.0);
    var squares = 0.0;
    for (var quad = lid; quad < quads; quad += WG) {
        let at = row * quads + quad;
        var v = a[at];
        if (params.has_add == 1u) {
            v += b[at];
            h[at] = v;
        }
        v *= SIZE;
        squares += dot(v, v);
        if (params.has_weight == 1u) {
            v *= w[quad];
        }
        most = max(most, abs(v));
    }
    let mean = reduce_add(squares, lid) / f32(params.dim);
    let factor = inverseSqrt(mean + params.eps * SIZE * SIZE);
    let scale = half_scale(reduce_max(max(max(most.x, most.y), max(most.z, most.w)), lid) * factor);
    if (lid == 0u) {
        scales[row] = scale;
    }
    for (var quad = lid; quad < quads; quad += WG) {
        let at = row * quads + quad;
        var v = a[at];
        if (params.has_add == 1u) {
            v += b[at];
        }
        v *= SIZE * factor;
        if (params.has_weight == 1u) {
            v *= w[quad];
        }
        halves[row * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u)] = halves_of_quad(v / scale);
    }
}
