// dx[s, k] = sum_r dy[s, r] w[experts[s] * stride + first + r, k] over the rows r < n that are in
// this part of w, added to dx if onto = 1, for every slot s: the derivative of
// matmul_vec_experts.wgsl by the row of a slot
// dy [T k, n] f32, w [row_count, k] in any weight format (rows row_base.. of all experts' rows),
// experts [T k] u32, dx [T k, k] f32. One workgroup for 256 columns of one slot. Its threads walk
// down the rows, four columns each.
// Needs: workgroup_number (grid.wgsl), rows_in_part (rows_in_part.wgsl), w_load4, w_row (the format
// of w). Gives: params.stride, params.first, params.n, params.row_base, params.row_count.
struct Params { k: u32, n: u32, stride: u32, first: u32, slots: u32, row_base: u32, row_count: u32, onto: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> experts: array<u32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

const WG = 64u;

@compute @workgroup_size(WG)
fn matmul_vec_experts_input(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let k = params.k;
    let groups = (k + 4u * WG - 1u) / (4u * WG);
    let number = workgroup_number(id, extents);
    let slot = number / groups;
    let i = number % groups * WG + lid;
    if (slot >= params.slots) { //~ whole: comparison, guard dropped
        return;
    }
    if (4u * i >= k) { //~ exit: comparison, guard dropped
        return;
    }
    let range = rows_in_part(experts[slot]);
    var sums = vec4<f32>(0.0);
    for (var r = range.x; r < range.y; r++) {
        sums += dy[slot * params.n + r] * w_load4(w_row(range.z + r, k), k, i);
    }
    for (var c = 0u; c < 4u; c++) {
        if (4u * i + c < k) {
            let at = slot * k + 4u * i + c;
            dx[at] = select(sums[c], dx[at] + sums[c], params.onto == 1u);
        }
    }
}
