// y[r, d] = x[r, d] / sqrt(mean_d x[r, d]^2 + eps) * w[d] (Zhang & Sennrich 2019, arXiv 1910.07467)
// x [rows, dim] f32, w [dim] f32 (not read when has_weight = 0), y [rows, dim] f32. One workgroup
// per row. A row is divided by its largest element first if that is above 1, so that squares do not
// overflow.
// Needs: workgroup_number (grid.wgsl), reduce_max, reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn rms_norm(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var largest = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        largest = max(largest, abs(x[base + d]));
    }
    let unit = max(reduce_max(largest, lid), 1.0);
    var sum = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let v = x[base + d] / unit;
        sum += v * v;
    }
    let mean = reduce_add(sum, lid) / f32(params.dim);
    let scale = inverseSqrt(mean + params.eps / (unit * unit));
    for (var d = lid; d < params.dim; d += WG) {
        let v = x[base + d] / unit * scale;
        y[base + d] = select(v, v * w[d], params.has_weight == 1u);
    }
}
