// dx[i] = dy[i] where x[i] > 0, 0 elsewhere: the derivative of relu.wgsl
// x, dy, dx [n] f32. One thread per element.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn relu_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        dx[i] = select(0.0, dy[i], x[i] > 0.0);
    }
}
