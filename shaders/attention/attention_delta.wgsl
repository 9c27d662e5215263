// stats[r] = (lse[r], sum_d dy[r, d] y[r, d]): what the derivatives of attention need of row r
// y, dy [rows, dim] f32, a row per row of the step and head; lse [rows] f32; stats [rows, 2] f32.
// One workgroup per row.
// Needs: workgroup_number (grid.wgsl), reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read> dy: array<f32>;
@group(0) @binding(3) var<storage, read> lse: array<f32>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;

const WG = 64u;

@compute @workgroup_size(WG)
fn attention_delta(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    var sum = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        sum += y[row * params.dim + d] * dy[row * params.dim + d];
    }
    let delta = reduce_add(sum, lid);
    if (lid == 0u) {
        stats[2u * row] = lse[row];
        stats[2u * row + 1u] = delta;
    }
}
