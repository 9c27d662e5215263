// scales[r] = 1 / sqrt(mean_d x[r, d]^2 + eps): the factors of the rows, by which column_sum.wgsl
// makes the derivative of rms_norm.wgsl by its weight
// x [rows, dim] f32, scales [rows] f32. One workgroup per row. A row is divided by its largest
// element first if that is above 1, so that squares do not overflow.
// Needs: workgroup_number (grid.wgsl), reduce_max, reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn rms_norm_weight_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let base = row * params.dim;
    var largest = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        largest = max(largest, abs(x[base + d]));
    }
    let unit = max(reduce_max(largest, lid), 1.0);
    var squares = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let v = x[base + d] / unit;
        squares += v * v;
    }
    let mean = reduce_add(squares, lid) / f32(params.dim);
    if (lid == 0u) {
        scales[row] = inverseSqrt(mean + params.eps / (unit * unit)) / unit;
    }
}
