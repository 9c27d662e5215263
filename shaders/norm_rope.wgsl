// y[t, n] = rope(x[t, n] / sqrt(mean x[t, n]^2 + eps) * w): the norm of every head and its rotation
// x, y [rows, heads, head_dim] f32, w [head_dim] f32 (not read when has_weight = 0), table [rows, dim / 2, 2] f32. One workgroup per head.
struct Params { heads: u32, head_dim: u32, dim: u32, rows: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 64u;

@compute @workgroup_size(WG)
fn norm_rope(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number >= params.rows * params.heads) {
        return;
    }
    for (var d = lid; d < params.head_dim; d += WG) {
        head[d] = x[number * params.head_dim + d];
    }
    head_norm(params.head_dim, params.eps, params.has_weight == 1u, lid);
    workgroupBarrier();
    for (var d = lid; d < params.head_dim; d += WG) {
        y[number * params.head_dim + d] = head_rotated(number / params.heads, d, params.dim);
    }
}
