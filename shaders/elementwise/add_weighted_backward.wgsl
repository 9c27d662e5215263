// dx[t, d] = (c[t, first] + shift) dy[t, d]: the derivative of add_weighted.wgsl by one tensor
// dy, dx [n / dim, dim] f32, c [n / dim, columns] f32. One thread per element.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32, dim: u32, columns: u32, first: u32, shift: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> c: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn add_weighted_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        dx[i] = (c[i / params.dim * params.columns + params.first] + params.shift) * dy[i];
    }
}
