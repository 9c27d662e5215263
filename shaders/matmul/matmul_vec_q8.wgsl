// y[row_base + r] = f sum_k w[r, k] x[k] + bias[row_base + r], with f the factor of the norm that
// readers of x apply, or 1
// x one row of activations in 8 bits (pack_q8.wgsl), w [row_count, k] in a format with units, bias
// f32 (if has_bias), y f32. One workgroup of WG lanes for two rows of w.
// Needs: WG (the variant), workgroup_number (grid.wgsl), w_row, w_steps, w_step (the format of w),
// acts_row, acts_factor (dot_q8.wgsl), lanes_each4 (lanes_near.wgsl). Gives: x.
struct Params { k: u32, row_base: u32, row_count: u32, has_bias: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WEIGHT_ROWS = 2u;
const LANES = 32u;
const QUARTER = LANES / 4u;
const PARTS = WG / LANES;
// For every 32 lanes: the sums of both rows, and the sum of the shares, which is stored twice.
var<workgroup> parts: array<f32, 4u * PARTS>;

@compute @workgroup_size(WG)
fn matmul_vec_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let r = workgroup_number(id, extents) * WEIGHT_ROWS;
    if (r >= params.row_count) {
        return;
    }
    let k = params.k;
    let first = w_row(r, k);
    let second = w_row(min(r + 1u, params.row_count - 1u), k);
    var sums = vec3<f32>(0.0);
    for (var j = lid; j < w_steps(k); j += WG) {
        sums += w_step(first, second, k, j, acts_row(0u, k));
    }
    // The bias is loaded while the sums are made.
    let at = params.row_base + r + lid;
    let inside = lid < WEIGHT_ROWS && r + lid < params.row_count;
    var added = 0.0;
    if (inside && params.has_bias == 1u) {
        added = bias[at];
    }
    let one = lanes_each4(sums.xyzz, LANES, lid);
    if (lid % QUARTER == 0u) {
        parts[lid / QUARTER] = one;
    }
    workgroupBarrier();
    if (inside) {
        var sum = parts[lid];
        var share = parts[WEIGHT_ROWS];
        for (var part = 1u; part < PARTS; part++) {
            sum += parts[4u * part + lid];
            share += parts[4u * part + WEIGHT_ROWS];
        }
        y[at] = sum * acts_factor(share) + added;
    }
}
