// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r]
// x [rows, k] f32, w [row_count, k] in any weight format, bias f32 (if has_bias), y [rows, n] f32.
// One workgroup for a row of x and WEIGHT_ROWS rows of w. Its threads walk the rows four elements
// at a time, so neighbours read neighbouring words. One reduction at the end sums all rows.
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 64u;
const WEIGHT_ROWS = 4u;

@compute @workgroup_size(WG)
fn matmul_vec(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let groups = (params.row_count + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let number = workgroup_number(id, extents);
    let t = number / groups;
    if (t >= params.rows) {
        return;
    }
    let r = number % groups * WEIGHT_ROWS;
    let last = params.row_count - 1u; //~ unowned: sign
    let k = params.k;
    let at = array<u32, WEIGHT_ROWS>(w_row(r, k), w_row(min(r + 1u, last), k), w_row(min(r + 2u, last), k), w_row(min(r + 3u, last), k));
    var sums = vec4<f32>(0.0);
    for (var i = lid; i < (k + 3u) / 4u; i += WG) {
        let v = x_load4(t, k, i);
        sums += vec4<f32>(
            dot(w_load4(at[0], k, i), v), dot(w_load4(at[1], k, i), v),
            dot(w_load4(at[2], k, i), v), dot(w_load4(at[3], k, i), v));
    }
    let total = reduce_add4(sums, lid);
    if (lid < WEIGHT_ROWS && r + lid < params.row_count) { //~ race: comparison
        let at = params.row_base + r + lid;
        y[t * params.n + at] = select(total[lid], total[lid] + bias[at], params.has_bias == 1u);
    }
}
