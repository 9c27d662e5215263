// g[v] += sum of dy[t] over the rows t of the step with ids[t] = v: the derivative of embed.wgsl by
// its table
// dy [rows, dim] f32, ids [rows] u32, step_rows (T, out), g [V, dim] f32. One workgroup per row. It
// returns if an earlier row has its id. Otherwise it sums the rows that have the id, in order, so
// no two workgroups write one row of g.
// Needs: workgroup_number (grid.wgsl), reduce_max (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> ids: array<u32>;
@group(0) @binding(3) var<storage, read> step_rows: array<u32>;
@group(0) @binding(4) var<storage, read_write> g: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn embed_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    let rows = min(step_rows[0], params.rows);
    if (row >= rows) { //~ whole: comparison, guard dropped
        return;
    }
    let own = ids[row];
    var before = 0.0;
    for (var t = lid; t < row; t += WG) {
        before = select(before, 1.0, ids[t] == own);
    }
    if (reduce_max(before, lid) > 0.0) {
        return;
    }
    for (var d = lid; d < params.dim; d += WG) {
        var sum = 0.0;
        for (var t = row; t < rows; t++) {
            if (ids[t] == own) {
                sum += dy[t * params.dim + d];
            }
        }
        g[own * params.dim + d] += sum;
    }
}
