// y[t, row_base + r] = f[t] sum_k w[r, k] x[t, k] + bias[row_base + r], with f the factor of the
// norm that readers of x apply, or 1
// x [rows, k] activations in 8 bits (pack_q8.wgsl), w [row_count, k] in a format with units, bias
// f32 (if has_bias), y [rows, n] f32. One workgroup for `tile` (4 to 32) rows of w and STEPS rows
// of x (rows8_steps_*.wgsl). Every lane holds a block of 32 columns of each of its rows of x. It
// multiplies them with row after row of w, two or four at a time, so activations are loaded once.
// Workgroups of the same rows of w are neighbours.
// Needs: STEPS (slot steps), WG, rows8_result (rows8_sums.wgsl), workgroup_number (grid.wgsl),
// w_rows8 (the format of w). Gives: MOST, x, PAIRS, params.many.
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, tile: u32, exchange: u32, many: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// Most rows of weights per workgroup.
const MOST = 32u;
// Whether rows of weights that neighbouring lanes share are taken in pairs instead of fours. With
// eight rows of activations, too few registers are left to load four rows ahead.
const PAIRS = STEPS == 8u;

@compute @workgroup_size(WG)
fn matmul_rows8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let steps = (params.rows + STEPS - 1u) / STEPS;
    let t0 = number % steps * STEPS;
    let r0 = number / steps * params.tile;
    if (r0 >= params.row_count) { //~ exit: comparison
        return;
    }
    let k = params.k;
    let last = params.rows - 1u - t0;
    let final_row = params.row_count - 1u;
    let count = min(params.tile, params.row_count - r0);
    w_rows8(t0, last, r0, final_row, count, k, lid);
    workgroupBarrier();
    for (var i = lid; i < MOST * STEPS; i += WG) { //~ race: comparison
        let r = i & (MOST - 1u);
        let t = i / MOST;
        if (t <= last && r < count) {
            let at = params.row_base + r0 + r;
            let v = rows8_result(r, t);
            y[(t0 + t) * params.n + at] = select(v, v + bias[at], params.has_bias == 1u);
        }
    }
}
