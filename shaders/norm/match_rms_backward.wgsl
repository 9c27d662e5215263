// dx[r, d] = f (dy[r, d] - x[r, d] p / (X dim)), without the second term where X <= least, and
// dlike[r, d] = like[r, d] p / (dim sqrt(L max(X, least))) with p = sum_d dy[r, d] x[r, d], the
// mean squares X of x and L of like, and f = sqrt(L / max(X, least)): the derivatives of
// match_rms.wgsl
// x, like, dy, dx, dlike [rows, dim] f32. One workgroup per row. Where L = 0, dlike is 0.
// Needs: workgroup_number (grid.wgsl), reduce_add4 (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, least: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> like: array<f32>;
@group(0) @binding(3) var<storage, read> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;
@group(0) @binding(5) var<storage, read_write> dlike: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn match_rms_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var sums = vec4<f32>(0.0);
    for (var d = lid; d < params.dim; d += WG) {
        let v = x[base + d];
        let l = like[base + d];
        sums += vec4<f32>(v * v, l * l, dy[base + d] * v, 0.0);
    }
    let means = reduce_add4(sums, lid) / f32(params.dim);
    let own = max(means.x, params.least);
    let factor = sqrt(means.y / own);
    let back = select(0.0, means.z / own, means.x > params.least); //~ never: comparison
    let gain = select(0.0, means.z / (sqrt(means.y) * sqrt(own)), means.y > 0.0);
    for (var d = lid; d < params.dim; d += WG) {
        dx[base + d] = factor * (dy[base + d] - x[base + d] * back);
        dlike[base + d] = like[base + d] * gain;
    }
}
