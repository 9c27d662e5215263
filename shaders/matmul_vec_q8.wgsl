// y[row_base + r] = sum_k w[r, k] x[k] + bias[row_base + r]
// x one row of activations in 8 bits (pack_q8.wgsl), w [row_count, k] in a format with units, bias f32 (if has_bias), y f32. One workgroup
// for ROWS rows of w: its threads walk them a unit of 32 elements at a time; all rows are loaded before the first is used.
struct Params { k: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 32u;
const ROWS = 2u;

@compute @workgroup_size(WG)
fn matmul_vec_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let r = workgroup_number(id, extents) * ROWS;
    if (r >= params.row_count) {
        return;
    }
    let k = params.k;
    let first = w_row(r, k);
    let second = w_row(min(r + 1u, params.row_count - 1u), k);
    var sums = vec2<f32>(0.0);
    for (var u = lid; u < (k >> 5u); u += WG) {
        let a = w_unit(first, k, u);
        let b = w_unit(second, k, u);
        let acts = acts_load(0u, k, w_halves(u));
        sums += vec2<f32>(dot_unit(a, acts), dot_unit(b, acts));
    }
    let total = vec2<f32>(reduce_add(sums.x, lid), reduce_add(sums.y, lid));
    if (lid < ROWS && r + lid < params.row_count) {
        let at = params.row_base + r + lid;
        y[at] = select(total[lid], total[lid] + bias[at], params.has_bias == 1u);
    }
}
