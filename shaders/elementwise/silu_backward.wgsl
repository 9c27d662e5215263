// dx[i] = dy[i] s (1 + x[i] (1 - s)) with s = 1 / (1 + exp(-x[i])): the derivative of silu.wgsl
// x, dy, dx [n] f32. One thread per element. The exponential is taken of -|x| and cannot overflow.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn silu_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let v = x[i];
        let e = exp(-abs(v));
        let sigmoid = select(e, 1.0, v >= 0.0) / (1.0 + e);
        let other = select(1.0, e, v >= 0.0) / (1.0 + e);
        dx[i] = dy[i] * sigmoid * (1.0 + v * other);
    }
}
