// y[t, d] = sum_j weights[t, j] x[t, j, d]
// x [rows, k, dim] f32, weights [rows, k] f32, y [rows, dim] f32. One thread per element.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32, dim: u32, k: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn combine_experts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i >= params.n) {
        return;
    }
    let slot = i / params.dim * params.k;
    var sum = 0.0;
    for (var j = 0u; j < params.k; j++) {
        sum += weights[slot + j] * x[(slot + j) * params.dim + i % params.dim];
    }
    y[i] = sum;
}
