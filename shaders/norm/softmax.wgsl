// y[r, d] = exp(x[r, d] - max_r) / sum_d exp(x[r, d] - max_r)
// x, y [rows, dim] f32. One workgroup per row: largest element, sum, quotients. Elements of minus
// infinity are masked.
// Needs: workgroup_number (grid.wgsl), reduce_max, reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const WG = 256u;
const LOWEST = -3.4028234e38;

@compute @workgroup_size(WG)
fn softmax(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var largest = LOWEST;
    for (var d = lid; d < params.dim; d += WG) {
        largest = max(largest, x[base + d]);
    }
    largest = reduce_max(largest, lid);
    var sum = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        sum += exp(x[base + d] - largest);
    }
    let total = reduce_add(sum, lid);
    for (var d = lid; d < params.dim; d += WG) {
        y[base + d] = exp(x[base + d] - largest) / total;
    }
}
