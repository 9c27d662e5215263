// y[t, n, i] = x[i] cos - x[i + dim/2] sin, y[t, n, i + dim/2] = x[i + dim/2] cos + x[i] sin for i
// < dim/2
// x, y [rows, heads, head_dim] f32; table [rows, dim/2, 2] f32 (cos, sin), from the host. Elements
// past dim are copied. One thread per element. (Su et al. 2021, arXiv 2104.09864; NEOX pairing)
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { heads: u32, head_dim: u32, dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn rope(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    let t = i / (params.heads * params.head_dim);
    if (t >= params.rows) {
        return;
    }
    let d = i % params.head_dim;
    let half = params.dim / 2u;
    if (d >= params.dim) {
        y[i] = x[i];
        return;
    }
    let at = t * params.dim + 2u * (d % half);
    let c = table[at];
    let s = table[at + 1u];
    if (d < half) {
        y[i] = x[i] * c - x[i + half] * s;
    } else {
        y[i] = x[i] * c + x[i - half] * s;
    }
}
