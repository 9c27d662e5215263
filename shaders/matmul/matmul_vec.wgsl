// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r]
// x [rows, k] f32, w [row_count, k] in any weight format, bias f32 (if has_bias), y [rows, n] f32.
// One workgroup for a row of x and WEIGHT_ROWS rows of w. Its threads walk the rows eight elements
// at a time, so neighbours read neighbouring words (quant/eights/rows.wgsl). The sums of all rows
// are added at the end.
// Needs: Acts, parts_leave, parts_sum (vec_sums.wgsl), x_load4 (slot quads), WG (the variant),
// workgroup_number (grid.wgsl), w_begin, w_part, w_four (the format of w). Gives: acts8. Bindings
// of pieces: x (slot quads).
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WEIGHT_ROWS = 4u;

fn acts8(t: u32, i: u32) -> Acts {
    return Acts(mat2x4<f32>(x_load4(t, params.k, 2u * i), x_load4(t, params.k, 2u * i + 1u)), 0.0);
}

@compute @workgroup_size(WG)
fn matmul_vec(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let groups = (params.row_count + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let number = workgroup_number(id, extents);
    let t = number / groups;
    if (t >= params.rows) {
        return;
    }
    let r = number % groups * WEIGHT_ROWS;
    w_begin(lid);
    let part = w_part(w_four(r, params.row_count, params.k), params.k, t, lid);
    // The bias is loaded while the sums are made.
    let inside = lid < WEIGHT_ROWS && r + lid < params.row_count;
    let at = params.row_base + r + lid;
    var added = 0.0;
    if (inside && params.has_bias == 1u) {
        added = bias[at];
    }
    parts_leave(part, false, lid);
    if (inside) {
        y[t * params.n + at] = parts_sum(lid) + added;
    }
}
