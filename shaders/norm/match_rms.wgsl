// y[r, d] = x[r, d] * sqrt(mean_d like[r, d]^2 / max(mean_d x[r, d]^2, least))
// x, like, y [rows, dim] f32: scales each row of x to the size of the same row of `like` (the
// magnitudes of Gemma 3n's AltUp streams). One workgroup per row.
// Needs: workgroup_number (grid.wgsl), reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, least: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> like: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn match_rms(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var own = 0.0;
    var wanted = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        own += x[base + d] * x[base + d];
        wanted += like[base + d] * like[base + d];
    }
    own = reduce_add(own, lid) / f32(params.dim);
    wanted = reduce_add(wanted, lid) / f32(params.dim);
    let factor = sqrt(wanted / max(own, params.least));
    for (var d = lid; d < params.dim; d += WG) {
        y[base + d] = x[base + d] * factor;
    }
}
