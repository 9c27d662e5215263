// dx[r, d] = g[d] - mean(g) (1 + multiplier (x[r, d] - mean_r) / deviation_r) with g = dy where y
// is above 0, and else 0: the derivative of gaussian_top_k.wgsl, whose cut-off moves with mean and
// deviation
// x, y, dy, dx [rows, dim] f32. One workgroup per row: the means, then the deviation, then the
// differences. A row of equal elements has no deviation.
// Needs: workgroup_number (grid.wgsl), reduce_add2, reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, multiplier: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

const WG = 256u;

fn kept(at: u32) -> f32 {
    return select(0.0, dy[at], y[at] > 0.0);
}

@compute @workgroup_size(WG)
fn gaussian_top_k_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var sums = vec2<f32>(0.0);
    for (var d = lid; d < params.dim; d += WG) {
        sums += vec2<f32>(x[base + d], kept(base + d));
    }
    let means = reduce_add2(sums, lid) / f32(params.dim);
    var squares = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let v = x[base + d] - means.x;
        squares += v * v;
    }
    let deviation = sqrt(reduce_add(squares, lid) / f32(params.dim));
    let slope = select(0.0, params.multiplier / deviation, deviation > 0.0);
    for (var d = lid; d < params.dim; d += WG) {
        dx[base + d] = kept(base + d) - means.y * (1.0 + slope * (x[base + d] - means.x));
    }
}
