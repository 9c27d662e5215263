// dx[t, j, d] = weights[t, j] dy[t, d], dweights[t, j] = sum_d dy[t, d] x[t, j, d]: the derivatives
// of combine_experts.wgsl
// x, dx [rows, k, dim] f32, weights, dweights [rows, k] f32, dy [rows, dim] f32. One workgroup per
// row and choice.
// Needs: workgroup_number (grid.wgsl), reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, slots: u32, k: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;
@group(0) @binding(5) var<storage, read_write> dweights: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn combine_experts_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let slot = workgroup_number(id, extents);
    if (slot >= params.slots) {
        return;
    }
    let base = slot / params.k * params.dim;
    let weight = weights[slot];
    var products = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let v = dy[base + d];
        products += v * x[slot * params.dim + d];
        dx[slot * params.dim + d] = weight * v;
    }
    let along = reduce_add(products, lid);
    if (lid == 0u) {
        dweights[slot] = along;
    }
}
