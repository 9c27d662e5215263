// dc[t, j] = sum_d dy[t, d] x_j[t, d] for j < count: the derivative of add_weighted.wgsl by its
// weights
// dy, x0 .. x3 [rows, dim] f32, of which the first `count` x are read; dc [rows, count] f32. One
// workgroup per row.
// Needs: workgroup_number (grid.wgsl), reduce_add4 (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> x0: array<f32>;
@group(0) @binding(3) var<storage, read> x1: array<f32>;
@group(0) @binding(4) var<storage, read> x2: array<f32>;
@group(0) @binding(5) var<storage, read> x3: array<f32>;
@group(0) @binding(6) var<storage, read_write> dc: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn add_weighted_backward_c(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    // Where there are fewer tensors, the other bindings are the first one again.
    var sums = vec4<f32>(0.0);
    for (var d = lid; d < params.dim; d += WG) {
        let at = base + d;
        sums += dy[at] * vec4<f32>(x0[at], x1[at], x2[at], x3[at]);
    }
    let all = reduce_add4(sums, lid);
    if (lid < params.count) {
        dc[row * params.count + lid] = all[lid];
    }
}
