// y[i] = max(x[i], 0) (Nair & Hinton 2010)
// x, y [n] f32. One thread per element. NaN stays NaN.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn relu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let v = x[i];
        y[i] = select(v, 0.0, v < 0.0); //~ meet: comparison
    }
}
