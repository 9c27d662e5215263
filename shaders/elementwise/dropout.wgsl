// y[i] = x[i] scale, or 0 where the first word of Threefry is below `threshold`, with the key
// (seed, step) and the counter (i, tensor) (Srivastava et al. 2014)
// x, y [n] f32, key [2] u32. One thread per element.
// Needs: workgroup_number (grid.wgsl), threefry2x32 (threefry.wgsl). Gives: nothing.
struct Params { n: u32, tensor: u32, threshold: u32, scale: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> key: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn dropout(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let drawn = threefry2x32(vec2<u32>(key[0], key[1]), vec2<u32>(i, params.tensor)).x;
        y[i] = select(x[i] * params.scale, 0.0, drawn < params.threshold); //~ never: comparison
    }
}
