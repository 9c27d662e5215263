// dx[t, n, i] = dy[i] cos + dy[i + dim/2] sin, dx[t, n, i + dim/2] = dy[i + dim/2] cos - dy[i] sin
// for i < dim/2: the adjoint of rope.wgsl
// dy, dx [rows, heads, head_dim] f32; table [rows, dim/2, 2] f32 (cos, sin), from the host.
// Elements past dim are copied. One thread per element.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { heads: u32, head_dim: u32, dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<f32>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn rope_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    let t = i / (params.heads * params.head_dim);
    if (t >= params.rows) {
        return;
    }
    let d = i % params.head_dim;
    let half = params.dim / 2u;
    if (d >= params.dim) {
        dx[i] = dy[i];
        return;
    }
    let at = t * params.dim + 2u * (d % half);
    let c = table[at];
    let s = table[at + 1u];
    if (d < half) {
        dx[i] = dy[i] * c + dy[i + half] * s;
    } else {
        dx[i] = dy[i] * c - dy[i - half] * s;
    }
}
