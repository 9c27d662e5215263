// dgate[i] = dy[i] up[i] s (1 + gate[i] (1 - s)), dup[i] = dy[i] gate[i] s with
// s = 1 / (1 + exp(-gate[i])): the derivatives of swiglu.wgsl
// gate, up, dy, dgate, dup [n] f32. One thread per element. The exponential is taken of -|gate| and
// cannot overflow.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<f32>;
@group(0) @binding(2) var<storage, read> up: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dgate: array<f32>;
@group(0) @binding(5) var<storage, read_write> dup: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn swiglu_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let g = gate[i];
        let e = exp(-abs(g));
        let sigmoid = select(e, 1.0, g >= 0.0) / (1.0 + e);
        let other = select(1.0, e, g >= 0.0) / (1.0 + e);
        dgate[i] = dy[i] * up[i] * sigmoid * (1.0 + g * other);
        dup[i] = dy[i] * g * sigmoid;
    }
}
