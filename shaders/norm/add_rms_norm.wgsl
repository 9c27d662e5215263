// h[r, d] = a[r, d] + b[r, d]; x[r, d] = h[r, d] / sqrt(mean_d h[r, d]^2 + eps) * w[d]
// a, b, h, x [rows, dim] f32, w [dim] f32 (not read when has_weight = 0): the residual sum and the
// norm that follows it (Zhang & Sennrich 2019, arXiv 1910.07467). One workgroup per row. A row is
// divided by its largest element first if that is above 1, so that squares do not overflow.
// Needs: workgroup_number (grid.wgsl), reduce_max, reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> h: array<f32>;
@group(0) @binding(5) var<storage, read_write> x: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn add_rms_norm(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var largest = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let sum = a[base + d] + b[base + d];
        h[base + d] = sum;
        largest = max(largest, abs(sum));
    }
    let unit = max(reduce_max(largest, lid), 1.0);
    var squares = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let v = h[base + d] / unit;
        squares += v * v;
    }
    let mean = reduce_add(squares, lid) / f32(params.dim);
    let scale = inverseSqrt(mean + params.eps / (unit * unit));
    for (var d = lid; d < params.dim; d += WG) {
        let v = h[base + d] / unit * scale;
        x[base + d] = select(v, v * w[d], params.has_weight == 1u);
    }
}
