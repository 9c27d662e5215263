// y[t, start + i] = x[t, i]
// x [n / dim, dim] f32, y [n / dim, wide] f32, of which `dim` columns from `start` on are written.
// One thread per element of x.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32, dim: u32, wide: u32, start: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn join_columns(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let t = i / params.dim;
        y[t * params.wide + params.start + i - t * params.dim] = x[i];
    }
}
