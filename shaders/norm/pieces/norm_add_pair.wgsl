// The summand of norm_add.wgsl as the sum of two norms: b[r, d] = c[r, d] / sqrt(mean_d c[r, d]^2 +
// c_eps) * c_weight[d] + d[r, d] / sqrt(mean_d d[r, d]^2 + d_eps) * d_weight[d]
// c, d [rows, dim] f32, c_weight, d_weight [dim] f32.
// Needs: squares4, WG, reduce_add4, inverse_root, params.dim, params.c_eps, params.d_eps. Gives:
// Part, part_load, part_factors, part_value.
@group(0) @binding(2) var<storage, read> c: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read> d: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read> c_weight: array<vec4<f32>>;
@group(0) @binding(10) var<storage, read> d_weight: array<vec4<f32>>;
struct Part { c: vec4<f32>, d: vec4<f32>, c_weight: vec4<f32>, d_weight: vec4<f32> }

fn part_load(row: u32, quad: u32, quads: u32) -> Part {
    let column = min(quad, quads - 1u);
    let at = row * quads + column;
    let live = select(0.0, 1.0, quad < quads);
    return Part(c[at] * live, d[at] * live, c_weight[column], d_weight[column]);
}

// Sums of squares (square_sums.wgsl): of c in xy, of d in zw.
fn part_squares(sums: vec4<f32>, p: Part) -> vec4<f32> {
    return vec4<f32>(squares4(sums.xy, p.c), squares4(sums.zw, p.d));
}

fn part_factors(row: u32, quads: u32, p0: Part, p1: Part, p2: Part, p3: Part, lid: u32) -> vec4<f32> {
    var sums = part_squares(part_squares(part_squares(part_squares(vec4<f32>(0.0), p0), p1), p2), p3);
    for (var quad = 4u * WG + lid; quad < quads; quad += WG) { //~ zeros: comparison
        sums = part_squares(sums, part_load(row, quad, quads));
    }
    let total = reduce_add4(sums, lid);
    return vec4<f32>(inverse_root(total.xy, f32(params.dim), params.c_eps), inverse_root(total.zw, f32(params.dim), params.d_eps));
}

fn part_value(p: Part, factors: vec4<f32>) -> vec4<f32> {
    return p.c * factors.x * factors.y * p.c_weight + p.d * factors.z * factors.w * p.d_weight;
}
