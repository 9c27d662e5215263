// dx[r, i] = dy[r, i] - exp(y[r, i]) sum_j dy[r, j]: the derivative of log_softmax.wgsl from its
// result y
// y, dy, dx [rows, dim] f32. One workgroup per row.
// Needs: workgroup_number (grid.wgsl), reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn log_softmax_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var sum = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        sum += dy[base + d];
    }
    let total = reduce_add(sum, lid);
    for (var d = lid; d < params.dim; d += WG) {
        dx[base + d] = dy[base + d] - exp(y[base + d]) * total;
    }
}
