// dx[r, i] = y[r, i] (dy[r, i] - sum_j y[r, j] dy[r, j]): the derivative of softmax.wgsl from its
// result y
// y, dy, dx [rows, dim] f32. One workgroup per row. The derivative at the largest element of y is
// subtracted from dy first: where that element has nearly all the weight, the difference above
// would lose its digits.
// Needs: workgroup_number (grid.wgsl), reduce_max, reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn softmax_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var most = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        most = max(most, y[base + d]);
    }
    let largest = reduce_max(most, lid);
    // The last index of the largest element. Indices are exact in f32.
    var place = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        place = select(place, f32(d), y[base + d] == largest);
    }
    let shift = dy[base + u32(reduce_max(place, lid))];
    var sum = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        sum += y[base + d] * (dy[base + d] - shift);
    }
    let mean = reduce_add(sum, lid);
    for (var d = lid; d < params.dim; d += WG) {
        dx[base + d] = y[base + d] * (dy[base + d] - shift - mean);
    }
}
