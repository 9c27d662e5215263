// scales[t] = the power of two 2^e for which 2^13 <= max_d |x[t, d]| / 2^e < 2^14; 1 for a row of zeros
// x [rows, dim] f32, scales [rows] f32. Rows divided by it fit f16 with room for sums and lose no precision to subnormals.
// One workgroup per row.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;

const WG = 128u;

@compute @workgroup_size(WG)
fn row_scale(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    var most = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        most = max(most, abs(x[row * params.dim + d]));
    }
    let largest = reduce_max(most, lid);
    if (lid == 0u) {
        // The exponent field of 2^e; below 2^-100 a row counts as zeros.
        let exponent = (bitcast<u32>(largest) >> 23u) - 13u;
        scales[row] = select(bitcast<f32>(exponent << 23u), 1.0, largest < 7.9e-31);
    }
}
