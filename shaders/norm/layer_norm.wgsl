// y[r, d] = (x[r, d] - mean_r) / sqrt(mean_d (x[r, d] - mean_r)^2 + eps) * w[d] + b[d]
// (Ba, Kiros & Hinton 2016, arXiv 1607.06450)
// x, y [rows, dim] f32, w, b [dim] f32 (not read when has_weight or has_bias = 0). One workgroup
// per row.
// Needs: workgroup_number (grid.wgsl), layer_norm_row, layer_norm_element (layer_norm_row.wgsl).
// Gives: params.dim, WG, x, params.eps.
struct Params { dim: u32, rows: u32, has_weight: u32, has_bias: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn layer_norm(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    let norm = layer_norm_row(base, lid);
    for (var d = lid; d < params.dim; d += WG) {
        var v = layer_norm_element(norm, x[base + d]);
        if (params.has_weight == 1u) {
            v *= w[d];
        }
        if (params.has_bias == 1u) {
            v += b[d];
        }
        y[base + d] = v;
    }
}
