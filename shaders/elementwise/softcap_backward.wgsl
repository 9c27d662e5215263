// dx[i] = dy[i] (1 - (y[i] / cap)^2): the derivative of softcap.wgsl, from its result y
// y, dy, dx [n] f32. One thread per element. The difference to the cap is taken first, so that it
// keeps its digits close to the cap.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32, cap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn softcap_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        dx[i] = dy[i] * ((params.cap - y[i]) / params.cap) * ((params.cap + y[i]) / params.cap);
    }
}
