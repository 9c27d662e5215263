// y[r, d] = max(x[r, d] - (mean_r + multiplier * deviation_r), 0), with the deviation over dim, not
// dim - 1
// x, y [rows, dim] f32. In a normal distribution this keeps a fixed share of largest elements
// (Gemma 3n's activation sparsity, as in Hugging Face's Gemma3nTextMLP). One workgroup per row:
// mean, then deviation from it, then differences.
// Needs: workgroup_number (grid.wgsl), reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, multiplier: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn gaussian_top_k(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var sum = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        sum += x[base + d];
    }
    let mean = reduce_add(sum, lid) / f32(params.dim);
    var squares = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let v = x[base + d] - mean;
        squares += v * v;
    }
    let deviation = sqrt(reduce_add(squares, lid) / f32(params.dim));
    for (var d = lid; d < params.dim; d += WG) {
        y[base + d] = max(x[base + d] - mean - params.multiplier * deviation, 0.0);
    }
}
