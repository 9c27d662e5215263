// h[r] = a[r] + b[r];   packed[r] = 8 bits of h[r, d] / sqrt(mean_d h[r, d]^2 + eps) * w[d]   (pack_q8.wgsl has the layout)
// a, b, h [rows, dim] f32 (b and h not touched when has_add = 0), w [dim] f32 (not read when has_weight = 0), dim a multiple of 32.
// One workgroup per row, four elements per thread at a time; rows of up to 4096 stay in registers, longer ones are read again.
struct Params { dim: u32, rows: u32, has_add: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> packed: array<u32>;

const WG = 256u;

fn sum_of(base: u32, quad: u32, quads: u32) -> vec4<f32> {
    let at = base + min(quad, quads - 1u);
    var v = a[at];
    if (params.has_add == 1u) {
        v += b[at];
    }
    return select(vec4<f32>(0.0), v, quad < quads);
}

fn finish(row: u32, quad: u32, quads: u32, v: vec4<f32>, factors: vec2<f32>, lid: u32) {
    let inside = quad < quads;
    if (inside && params.has_add == 1u) {
        h[row * quads + quad] = v;
    }
    var normed = v * factors.x * factors.y;
    if (params.has_weight == 1u) {
        normed *= w[min(quad, quads - 1u)];
    }
    pack_q8_quad(row, params.dim, quad, inside, normed, lid);
}

@compute @workgroup_size(WG)
fn norm_pack_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = params.dim >> 2u;
    let base = row * quads;
    // By name: an array in a loop would leave registers.
    let v0 = sum_of(base, lid, quads);
    let v1 = sum_of(base, WG + lid, quads);
    let v2 = sum_of(base, 2u * WG + lid, quads);
    let v3 = sum_of(base, 3u * WG + lid, quads);
    var sums = squares4(squares4(squares4(squares4(vec2<f32>(0.0), v0), v1), v2), v3);
    for (var quad = 4u * WG + lid; quad < quads; quad += WG) {
        sums = squares4(sums, sum_of(base, quad, quads));
    }
    let total = reduce_add4(vec4<f32>(sums, 0.0, 0.0), lid);
    let factors = inverse_root(total.xy, f32(params.dim), params.eps);
    finish(row, lid, quads, v0, factors, lid);
    if (quads > WG) {
        finish(row, WG + lid, quads, v1, factors, lid);
    }
    if (quads > 2u * WG) {
        finish(row, 2u * WG + lid, quads, v2, factors, lid);
    }
    if (quads > 3u * WG) {
        finish(row, 3u * WG + lid, quads, v3, factors, lid);
    }
    for (var first = 4u * WG; first < quads; first += WG) {
        finish(row, first + lid, quads, sum_of(base, first + lid, quads), factors, lid);
    }
}
