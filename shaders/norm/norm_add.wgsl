// h[r] = scale s (a[r] + b[r, d] / sqrt(mean_d b[r, d]^2 + eps) * w[d])
// a, b, h [rows, dim] f32, w [dim] f32 (not read when has_weight = 0), s one f32 (1 when has_factor
// = 0), dim a multiple of 4; b lies in memory or is a sum of two norms (pieces/norm_add_one.wgsl,
// pieces/norm_add_pair.wgsl). One workgroup per row, four elements per thread at a time. Rows of up
// to 4096 elements stay in registers; longer rows are read again.
// Needs: norm_add_weight, norm_add_then (norm_add_end.wgsl or norm_add_q8.wgsl), workgroup_number
// (grid.wgsl), part_load, part_factors, part_value (norm_add_one.wgsl or norm_add_pair.wgsl),
// squares4, inverse_root (square_sums.wgsl), reduce_add2 (reduce.wgsl). Gives: WG, params.dim,
// params.c_eps, params.d_eps, params.pack, params.has_u, params.next_eps. Bindings of pieces: b
// (norm_add_one.wgsl), c, d, c_weight, d_weight (norm_add_pair.wgsl), u, packed (norm_add_q8.wgsl).
struct Params {
    dim: u32, rows: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, eps: f32, next_eps: f32, scale: f32, c_eps: f32, d_eps: f32
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> s: array<f32>;
@group(0) @binding(5) var<storage, read_write> h: array<vec4<f32>>;

const WG = 256u;

// Operands of a quad: `a` is added to it, `w` is its weight, `u` is the weight of the norm that
// follows.
struct Beside { a: vec4<f32>, w: vec4<f32>, u: vec4<f32> }

fn beside(row: u32, quad: u32, quads: u32) -> Beside {
    let at = min(quad, quads - 1u);
    var weight = vec4<f32>(1.0);
    if (params.has_weight == 1u) {
        weight = w[at];
    }
    return Beside(a[row * quads + at], weight, norm_add_weight(at));
}

fn finish(row: u32, quad: u32, quads: u32, v: vec4<f32>, near: Beside, factors: vec2<f32>, factor: f32, lid: u32) {
    let inside = quad < quads;
    let y = (near.a + v * factors.x * factors.y * near.w) * factor;
    if (inside) {
        h[row * quads + quad] = y;
    }
    norm_add_then(row, quad, inside, y, near.u, lid);
}

@compute @workgroup_size(WG)
fn norm_add(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = params.dim >> 2u;
    var factor = params.scale;
    if (params.has_factor == 1u) {
        factor *= s[0];
    }
    // One variable per quad: an array that a loop indexes would not stay in registers.
    let p0 = part_load(row, lid, quads);
    let p1 = part_load(row, WG + lid, quads);
    let p2 = part_load(row, 2u * WG + lid, quads);
    let p3 = part_load(row, 3u * WG + lid, quads);
    // These operands are loaded while the row is summed.
    let near0 = beside(row, lid, quads);
    let near1 = beside(row, WG + lid, quads);
    let parts = part_factors(row, quads, p0, p1, p2, p3, lid);
    let v0 = part_value(p0, parts);
    let v1 = part_value(p1, parts);
    let v2 = part_value(p2, parts);
    let v3 = part_value(p3, parts);
    var sums = squares4(squares4(squares4(squares4(vec2<f32>(0.0), v0), v1), v2), v3);
    for (var quad = 4u * WG + lid; quad < quads; quad += WG) { //~ zeros: comparison
        sums = squares4(sums, part_value(part_load(row, quad, quads), parts));
    }
    let total = reduce_add2(sums, lid);
    let factors = inverse_root(total, f32(params.dim), params.eps);
    finish(row, lid, quads, v0, near0, factors, factor, lid);
    if (quads > WG) {
        finish(row, WG + lid, quads, v1, near1, factors, factor, lid);
    }
    if (quads > 2u * WG) {
        finish(row, 2u * WG + lid, quads, v2, beside(row, 2u * WG + lid, quads), factors, factor, lid);
    }
    if (quads > 3u * WG) {
        finish(row, 3u * WG + lid, quads, v3, beside(row, 3u * WG + lid, quads), factors, factor, lid);
    }
    for (var first = 4u * WG; first < quads; first += WG) {
        let v = part_value(part_load(row, first + lid, quads), parts);
        finish(row, first + lid, quads, v, beside(row, first + lid, quads), factors, factor, lid);
    }
}
