// y[s, r] = f sum_k w[experts[s] * stride + first + r, k] x[s / per, k] for every slot s (a row of
// the step and one of its choices), with f the factor of the norm that readers of x apply, or 1
// x [T k / per, k] in 8 bits, `heads` rows of x in a packed row (pack_q8.wgsl), w [row_count, k] in
// a format with units (rows row_base.. of all experts' rows), experts [T k] u32, y [T k, n] f32.
// One workgroup of WG lanes for two rows of one slot. Results of rows in other parts of w are not
// written.
// Needs: workgroup_number (grid.wgsl), w_row, w_steps, w_step (the format of w), acts_row,
// acts_factor (dot_q8.wgsl), lanes_add4 (lanes.wgsl). Gives: x, WG.
struct Params { k: u32, n: u32, stride: u32, first: u32, per: u32, heads: u32, slots: u32, row_base: u32, row_count: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> experts: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 32u;
const WEIGHT_ROWS = 2u;

@compute @workgroup_size(WG)
fn matmul_vec_q8_experts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let groups = (params.n + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let number = workgroup_number(id, extents);
    let slot = number / groups;
    if (slot >= params.slots) {
        return;
    }
    let r = vec2<u32>(0u, 1u) + number % groups * WEIGHT_ROWS;
    // The rows within this part of w. Rows before this part wrap around to large numbers.
    let local = r + (experts[slot] * params.stride + params.first - params.row_base);
    let owned = (r < vec2<u32>(params.n)) & (local < vec2<u32>(params.row_count)); //~ later: comparison
    if (!any(owned)) { //~ exit: guard dropped
        return;
    }
    let k = params.k;
    let rows = select(vec2<u32>(0u), local, owned); //~ unowned: off by one
    let first = w_row(rows.x, k);
    let second = w_row(rows.y, k);
    // `at`: the offsets of the slot's row in x (acts_row). The row is a part of a packed row.
    let row = slot / params.per;
    let at = acts_row(row / params.heads, params.heads * k) + row % params.heads * vec2<u32>(k >> 4u, k >> 5u);
    var sums = vec3<f32>(0.0);
    for (var j = lid; j < w_steps(k); j += WG) {
        sums += w_step(first, second, k, j, at);
    }
    let total = lanes_add4(vec4<f32>(sums, 0.0), WG, lid);
    if (lid < WEIGHT_ROWS && owned[lid]) {
        y[slot * params.n + r[lid]] = total[lid] * acts_factor(total.z);
    }
}
