// y[r, d] = x[r, d] / sqrt(mean_d x[r, d]^2 + eps) * w[d] (Zhang & Sennrich 2019, arXiv 1910.07467)
// x [rows, dim] f32, w [dim] f32 (not read when has_weight = 0), y [rows, dim] f32. One workgroup
// per row, four elements per thread at a time (pieces/norm_quads.wgsl or pieces/norm_tail.wgsl).
// Rows of up to 4096 elements stay in registers; longer rows are read again.
struct Params { dim: u32, rows: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;

const WG = 256u;

fn finish(row: u32, quad: u32, v: vec4<f32>, w: vec4<f32>, factors: vec2<f32>) {
    y_store(row, quad, v * factors.x * factors.y * w);
}

@compute @workgroup_size(WG)
fn rms_norm(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = (params.dim + 3u) >> 2u;
    // One variable per quad: an array that a loop indexes would not stay in registers.
    let v0 = x_own(row, lid);
    let v1 = x_own(row, WG + lid);
    let v2 = x_own(row, 2u * WG + lid);
    let v3 = x_own(row, 3u * WG + lid);
    // Loaded while the row is summed.
    let w0 = weight(lid);
    let w1 = weight(WG + lid);
    var sums = squares4(squares4(squares4(squares4(vec2<f32>(0.0), v0), v1), v2), v3);
    for (var quad = 4u * WG + lid; quad < quads; quad += WG) { //~ zeros: comparison
        sums = squares4(sums, x_own(row, quad));
    }
    let factors = inverse_root(reduce_add2(sums, lid), f32(params.dim), params.eps);
    finish(row, lid, v0, w0, factors);
    finish(row, WG + lid, v1, w1, factors);
    finish(row, 2u * WG + lid, v2, weight(2u * WG + lid), factors);
    finish(row, 3u * WG + lid, v3, weight(3u * WG + lid), factors);
    for (var quad = 4u * WG + lid; quad < quads; quad += WG) { //~ dropped: comparison
        finish(row, quad, x_own(row, quad), weight(quad), factors);
    }
}
