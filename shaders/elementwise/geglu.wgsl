// y[t, i] = gelu(gate[t, i]) * up[t, start + i], tanh form (Shazeer 2020, arXiv 2002.05202)
// gate, y [n / dim, dim] f32; up [n / dim, up_dim] f32, of which `dim` columns from `start` on are
// read. One thread per element.
// Needs: workgroup_number (grid.wgsl), gelu_of (gelu.wgsl). Gives: nothing.
struct Params { n: u32, dim: u32, up_dim: u32, start: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<f32>;
@group(0) @binding(2) var<storage, read> up: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn geglu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        let t = i / params.dim;
        y[i] = gelu_of(gate[i]) * up[t * params.up_dim + params.start + i - t * params.dim];
    }
}
