// dx[t, d] = sum of dy[o, d] over the o with out_rows[o] = t: the derivative of gather_rows.wgsl
// dy [out, dim] f32, out_rows [out] u32 in rising order, step_rows (T, out), dx [rows, dim] f32.
// One thread per element finds the first o by bisection.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { dim: u32, rows: u32, most: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> out_rows: array<u32>;
@group(0) @binding(3) var<storage, read> step_rows: array<u32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn gather_rows_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    let row = i / params.dim;
    if (row >= params.rows) {
        return;
    }
    let chosen = min(step_rows[1], params.most);
    var below = 0u;
    var above = chosen;
    while (below < above) {
        let middle = (below + above) / 2u;
        if (out_rows[middle] < row) {
            below = middle + 1u;
        } else {
            above = middle;
        }
    }
    var sum = 0.0;
    for (var o = below; o < chosen && out_rows[o] == row; o++) {
        sum += dy[o * params.dim + i % params.dim];
    }
    dx[i] = sum;
}
