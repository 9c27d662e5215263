// y[o, d] = x[out_rows[o], d]
// x [T, dim] f32, out_rows [rows] u32, y [rows, dim] f32. One thread per element.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { dim: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> out_rows: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn gather_rows(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    let row = i / params.dim;
    if (row < params.rows) {
        y[i] = x[out_rows[row] * params.dim + i % params.dim];
    }
}
