// dx[r, d] = s (g[r, d] - mean_e g[r, e] - n[r, d] mean_e g[r, e] n[r, e]) with g = w dy,
// n = (x - mean) s and s = 1 / sqrt(variance + eps): the derivative of layer_norm.wgsl by x
// x, dy, dx [rows, dim] f32, w [dim] f32 (not read when has_weight = 0). One workgroup per row.
// Needs: workgroup_number (grid.wgsl), layer_norm_row, layer_norm_element (layer_norm_row.wgsl),
// reduce_add (reduce.wgsl). Gives: params.dim, WG, x, params.eps.
struct Params { dim: u32, rows: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

const WG = 256u;

fn weighted(base: u32, d: u32) -> f32 {
    let v = dy[base + d];
    return select(v, v * w[d], params.has_weight == 1u);
}

@compute @workgroup_size(WG)
fn layer_norm_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    let norm = layer_norm_row(base, lid);
    var sum = 0.0;
    var products = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let g = weighted(base, d);
        sum += g;
        products += g * layer_norm_element(norm, x[base + d]);
    }
    let mean = reduce_add(sum, lid) / f32(params.dim);
    let along = reduce_add(products, lid) / f32(params.dim);
    for (var d = lid; d < params.dim; d += WG) {
        let n = layer_norm_element(norm, x[base + d]);
        dx[base + d] = norm.scale * norm.unit * (weighted(base, d) - mean - n * along);
    }
}
