// y[r] = the first index of the largest element of x[r]; NaN never wins, and a row of NaN gives 0
// x [rows, dim] f32, read as bits, y [rows] u32. One workgroup per row.
// Needs: workgroup_number (grid.wgsl), NAN_KEY, order_key, best_of (order.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn argmax(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    var best = vec2<u32>(NAN_KEY, lid);
    for (var d = lid; d < params.dim; d += WG) {
        let key = order_key(x[row * params.dim + d]);
        if (key > best.x) {
            best = vec2<u32>(key, d);
        }
    }
    best = best_of(best, lid);
    if (lid == 0u) {
        y[row] = best.y;
    }
}
