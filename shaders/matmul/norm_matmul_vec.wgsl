// y[t, r] = scale sum_k w[r, k] x[t, k] with x[t, k] = h[t, k] / sqrt(mean_k h[t, k]^2 + eps) u[k]
// h [rows, k] f32, k a multiple of 4, w [n, k] in any weight format, u [k] f32 (not read when
// has_weight = 0), y [rows, n] f32: a product that norms its rows itself. One workgroup for a row
// of h and WEIGHT_ROWS rows of w, as in matmul_vec.wgsl. The factor of the norm is applied to the
// sums.
// Needs: workgroup_number (grid.wgsl), w_row, w_load4 (the format of w), norm_share,
// TWO_POW_MINUS_32 (norm_share.wgsl), reduce_add4, reduce_add (reduce.wgsl). Gives: WG.
struct Params { k: u32, n: u32, rows: u32, has_weight: u32, eps: f32, scale: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 256u;
const WEIGHT_ROWS = 4u;

@compute @workgroup_size(WG)
fn norm_matmul_vec(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let groups = (params.n + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let number = workgroup_number(id, extents);
    let t = number / groups;
    if (t >= params.rows) {
        return;
    }
    let r = number % groups * WEIGHT_ROWS;
    let last = params.n - 1u;
    let k = params.k;
    let at = array<u32, WEIGHT_ROWS>(w_row(r, k), w_row(min(r + 1u, last), k), w_row(min(r + 2u, last), k), w_row(min(r + 3u, last), k));
    var sums = vec4<f32>(0.0);
    var share = 0.0;
    for (var i = lid; i < (k >> 2u); i += WG) {
        var v = h[t * (k >> 2u) + i];
        share += norm_share(v, k, params.eps);
        if (params.has_weight == 1u) {
            v *= u[i];
        }
        sums += vec4<f32>(
            dot(w_load4(at[0], k, i), v), dot(w_load4(at[1], k, i), v),
            dot(w_load4(at[2], k, i), v), dot(w_load4(at[3], k, i), v));
    }
    let total = reduce_add4(sums, lid);
    let factor = params.scale * TWO_POW_MINUS_32 * inverseSqrt(reduce_add(share, lid));
    if (lid < WEIGHT_ROWS && r + lid < params.n) {
        y[t * params.n + r + lid] = total[lid] * factor;
    }
}
