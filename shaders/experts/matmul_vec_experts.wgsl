// y[s, r] = sum_k w[experts[s] * stride + first + r, k] x[s / per, k] for every slot s (a row of
// the step and one of its choices)
// x [T k / per, k] f32, w [row_count, k] in any weight format (rows row_base.. of all experts'
// rows), experts [T k] u32, y [T k, n] f32. One workgroup for WEIGHT_ROWS rows of one slot. Its
// threads walk the rows four elements at a time. One reduction at the end sums all rows. Results of
// rows in other parts of w are not written.
// Needs: workgroup_number (grid.wgsl), w_row, w_load4 (the format of w), x_load4 (slot quads),
// reduce_add4 (reduce.wgsl). Gives: WG. Bindings of pieces: x (slot quads).
struct Params { k: u32, n: u32, stride: u32, first: u32, per: u32, slots: u32, row_base: u32, row_count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> experts: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 64u;
const WEIGHT_ROWS = 4u;

@compute @workgroup_size(WG)
fn matmul_vec_experts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let groups = (params.n + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let number = workgroup_number(id, extents);
    let slot = number / groups;
    if (slot >= params.slots) {
        return;
    }
    let r = vec4<u32>(0u, 1u, 2u, 3u) + number % groups * WEIGHT_ROWS;
    // The rows within this part of w. Rows before this part wrap around to large numbers.
    let local = r + (experts[slot] * params.stride + params.first - params.row_base);
    let owned = (r < vec4<u32>(params.n)) & (local < vec4<u32>(params.row_count)); //~ later: comparison
    if (!any(owned)) { //~ exit: guard dropped
        return;
    }
    let k = params.k;
    let rows = select(vec4<u32>(0u), local, owned); //~ unowned: off by one
    let at = array<u32, WEIGHT_ROWS>(w_row(rows.x, k), w_row(rows.y, k), w_row(rows.z, k), w_row(rows.w, k));
    var sums = vec4<f32>(0.0);
    for (var i = lid; i < (k + 3u) / 4u; i += WG) {
        let v = x_load4(slot / params.per, k, i);
        sums += vec4<f32>(
            dot(w_load4(at[0], k, i), v), dot(w_load4(at[1], k, i), v),
            dot(w_load4(at[2], k, i), v), dot(w_load4(at[3], k, i), v));
    }
    let total = reduce_add4(sums, lid);
    if (lid < WEIGHT_ROWS && owned[lid]) { //~ clamped: comparison
        y[slot * params.n + r[lid]] = total[lid];
    }
}
