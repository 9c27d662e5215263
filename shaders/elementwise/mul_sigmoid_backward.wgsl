// dgate[t] = s (1 - s) sum_d dy[t, d] x[t, d] with s = 1 / (1 + exp(-gate[t])): the derivative of
// mul_sigmoid.wgsl by the gate
// x, dy [rows, dim] f32, gate, dgate [rows] f32. One workgroup per row. The exponential is taken of
// -|gate| and cannot overflow.
// Needs: workgroup_number (grid.wgsl), reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> gate: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dgate: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn mul_sigmoid_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var products = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        products += dy[base + d] * x[base + d];
    }
    let along = reduce_add(products, lid);
    if (lid == 0u) {
        let e = exp(-abs(gate[row]));
        dgate[row] = along * (e / ((1.0 + e) * (1.0 + e)));
    }
}
