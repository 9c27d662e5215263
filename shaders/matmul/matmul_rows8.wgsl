// y[t, row_base + r] = f[t] sum_k w[r, k] x[t, k] + bias[row_base + r], with f the factor of the
// norm that readers of x apply, or 1
// x [rows, k] activations in 8 bits (pack_q8.wgsl), w [row_count, k] in a format with units, bias
// f32 (if has_bias), y [rows, n] f32. One workgroup for `tile` (4 to 32) rows of w and STEPS rows
// of x (rows8_steps_*.wgsl). Every lane holds a block of 32 columns of each of its rows of x. It
// multiplies them with row after row of w, two or four at a time, so activations are loaded once.
// Workgroups of the same rows of w are neighbours.
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, tile: u32, exchange: u32 }
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
    let blocks = k >> 5u;
    let last = params.rows - 1u - t0;
    let final_row = params.row_count - 1u; //~ unowned: sign
    let count = min(params.tile, params.row_count - r0);
    let lane = w_lane(lid);
    let pairs = in_pairs(w_near);
    let step = select(4u, 2u, pairs); //~ apart: off by one
    var ab = w_ab(r0, final_row, k, min(lane, blocks - 1u), lid); //~ apart
    var cd = w_cd(r0, final_row, k, min(lane, blocks - 1u), lid); //~ dropped: sign; apart: minimum, off by one
    for (var first = 0u; first < blocks; first += WG) { //~ empty: comparison
        let block = min(first + lane, blocks - 1u);
        let held = held_load(t0, last, k, block, select(0u, lid & 1u, w_near), select(0.0, 1.0, first + lane < blocks)); //~ apart: mask
        rows8_add_share(first, held_share(held, w_near, lid), w_near, lid);
        for (var r = 0u; r < count; r += step) {
            // Loads the next rows, or the first rows of the next blocks.
            let ends = r + step >= count;
            let next = r0 + select(r + step, 0u, ends);
            let there = select(block, min(first + WG + lane, blocks - 1u), ends); //~ apart
            let now = ab;
            if (pairs) { //~ twice: guard dropped
                ab = w_ab(next, final_row, k, there, lid);
            }
            let a = held_dots(held, w_of_a(now, k, block), w_alike);
            let b = held_dots(held, w_of_b(now, k, block), w_alike);
            var sums = held_pair(a, b, rows_bit(w_near), lid);
            if (!pairs) { //~ apart: guard dropped
                ab = w_ab(next, final_row, k, there, lid);
                let c = held_dots(held, w_of_c(now, cd, k, block), w_alike);
                let d = held_dots(held, w_of_d(now, cd, k, block), w_alike);
                sums = held_pair(sums, held_pair(c, d, rows_bit(w_near), lid), 2u * rows_bit(w_near), lid);
                cd = w_cd(next, final_row, k, there, lid);
            }
            rows8_add(first, r, held_own(sums, w_near, lid), w_near, lid);
        }
    }
    workgroupBarrier();
    for (var i = lid; i < MOST * STEPS; i += WG) {
        let r = i & (MOST - 1u);
        let t = i / MOST;
        if (t <= last && r < count) {
            let at = params.row_base + r0 + r;
            let v = rows8_result(r, t);
            y[(t0 + t) * params.n + at] = select(v, v + bias[at], params.has_bias == 1u);
        }
    }
}
