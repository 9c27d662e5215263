// y[row_base + r] = f sum_k w[r, k] x[k] + bias[row_base + r], with f the factor of the norm that was left to the readers of x, or 1
// x one row of activations in 8 bits (pack_q8.wgsl), w [row_count, k] in a format with units, bias f32 (if has_bias), y f32. One workgroup
// of WG lanes (lanes_32.wgsl, lanes_192.wgsl) for two rows of w.
struct Params { k: u32, row_base: u32, row_count: u32, has_bias: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const ROWS = 2u;
const LANES = 32u;
const PARTS = WG / LANES;
var<workgroup> part_sums: array<vec3<f32>, PARTS>;

@compute @workgroup_size(WG)
fn matmul_vec_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let r = workgroup_number(id, extents) * ROWS;
    if (r >= params.row_count) {
        return;
    }
    let k = params.k;
    let first = w_row(r, k);
    let second = w_row(min(r + 1u, params.row_count - 1u), k);
    var sums = vec3<f32>(0.0);
    for (var j = lid; j < w_steps(k); j += WG) {
        sums += w_step(first, second, k, j);
    }
    var total = lanes_add4(vec4<f32>(sums, 0.0), LANES, lid).xyz;
    if (PARTS > 1u) {
        if (lid % LANES == 0u) {
            part_sums[lid / LANES] = total;
        }
        workgroupBarrier();
        total = part_sums[0];
        for (var part = 1u; part < PARTS; part++) {
            total += part_sums[part];
        }
    }
    if (lid < ROWS && r + lid < params.row_count) {
        let at = params.row_base + r + lid;
        let v = total[lid] * acts_factor(total.z);
        y[at] = select(v, v + bias[at], params.has_bias == 1u);
    }
}
