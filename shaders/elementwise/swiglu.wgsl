// y[i] = gate[i] / (1 + exp(-gate[i])) * up[i] (Shazeer 2020, arXiv 2002.05202)
// gate, up, y [n] f32. One thread per element. The exponential is taken of -|gate| and cannot
// overflow.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<f32>;
@group(0) @binding(2) var<storage, read> up: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn swiglu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let g = gate[i];
        let e = exp(-abs(g));
        let sigmoid = select(e, 1.0, g >= 0.0) / (1.0 + e);
        y[i] = g * sigmoid * up[i];
    }
}
