// y[i] = cap * tanh(x[i] / cap) (Gemma 2 report, arXiv 2408.00118, section 2)
// x, y [n] f32. One thread per element. Some drivers return NaN from tanh of large arguments and
// lose small arguments. Therefore exp computes tanh and, near zero, a series does.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32, cap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn softcap(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let z = clamp(x[i] / params.cap, -15.0, 15.0);
        let e = exp(-2.0 * abs(z));
        let z2 = z * z;
        // At |z| = 0.25 the terms after z^7 are below 4e-7 of the sum.
        let series = z * (1.0 + z2 * (-1.0 / 3.0 + z2 * (2.0 / 15.0 - z2 * (17.0 / 315.0))));
        y[i] = params.cap * select(sign(z) * (1.0 - e) / (1.0 + e), series, abs(z) < 0.25); //~ meet: comparison
    }
}
