// dx[r, d] = s (w[d] dy[r, d] - n[r, d] mean_e w[e] dy[r, e] n[r, e]) with n = x s and
// s = 1 / sqrt(mean_d x[r, d]^2 + eps): the derivative of rms_norm.wgsl by x
// x, dy, dx [rows, dim] f32, w [dim] f32 (not read when has_weight = 0). One workgroup per row. A
// row is divided by its largest element first if that is above 1, so that squares do not overflow.
// Needs: workgroup_number (grid.wgsl), reduce_max, reduce_add (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

const WG = 256u;

fn weighted(base: u32, d: u32) -> f32 {
    let v = dy[base + d];
    return select(v, v * w[d], params.has_weight == 1u);
}

@compute @workgroup_size(WG)
fn rms_norm_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
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
    var squares = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let v = x[base + d] / unit;
        squares += v * v;
    }
    let mean = reduce_add(squares, lid) / f32(params.dim);
    let scale = inverseSqrt(mean + params.eps / (unit * unit));
    var products = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        products += weighted(base, d) * (x[base + d] / unit * scale);
    }
    let along = reduce_add(products, lid) / f32(params.dim);
    for (var d = lid; d < params.dim; d += WG) {
        dx[base + d] = scale / unit * (weighted(base, d) - x[base + d] / unit * scale * along);
    }
}
