// y[i] = a[i] + b[i mod period]
// a, y [n] f32; b [period] f32, a whole tensor (period = n) or a row that repeats. One thread per
// element.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32, period: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn add(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        y[i] = a[i] + b[i % params.period];
    }
}
