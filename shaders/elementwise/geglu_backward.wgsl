// dgate[t, i] = dy[t, i] up[t, start + i] gelu'(gate[t, i]), dup[t, i] = dy[t, i] gelu(gate[t, i]):
// the derivatives of geglu.wgsl
// gate, dy, dgate, dup [n / dim, dim] f32; up [n / dim, up_dim] f32, of which `dim` columns from
// `start` on are read. One thread per element.
// Needs: workgroup_number (grid.wgsl), gelu_slope (gelu_slope.wgsl). Gives: nothing.
struct Params { n: u32, dim: u32, up_dim: u32, start: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<f32>;
@group(0) @binding(2) var<storage, read> up: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dgate: array<f32>;
@group(0) @binding(5) var<storage, read_write> dup: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn geglu_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let t = i / params.dim;
        let bent = gelu_slope(gate[i]);
        dgate[i] = dy[i] * up[t * params.up_dim + params.start + i - t * params.dim] * bent.y;
        dup[i] = dy[i] * bent.x;
    }
}
