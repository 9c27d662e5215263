// y_a = f[t] a x[t] + bias_a, y_b = f[t] b x[t] + bias_b, y_c = f[t] c x[t] + bias_c, with f the
// factor of the norm that readers of x apply, or 1
// x [rows, k] activations in 8 bits (pack_q8.wgsl), a [rows_a, k], b [rows_b, k], c [rows_c, k] in
// formats with units, biases f32 (if `biases` has their bit, a lowest), y [rows, rows_a | rows_b |
// rows_c] f32. Works like matmul_rows8.wgsl. Each weight has a format of its own and as many
// workgroups as it needs.
struct Params { k: u32, rows: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, tile: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> wa: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> wb: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> wc: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> bias_a: array<f32>;
@group(0) @binding(6) var<storage, read> bias_b: array<f32>;
@group(0) @binding(7) var<storage, read> bias_c: array<f32>;
@group(0) @binding(8) var<storage, read_write> ya: array<f32>;
@group(0) @binding(9) var<storage, read_write> yb: array<f32>;
@group(0) @binding(10) var<storage, read_write> yc: array<f32>;

// Threads; also the blocks of 32 columns that a workgroup has at a time.
const WG = 128u;
// Most rows of weights per workgroup.
const MOST = 32u;
// Whether rows of weights that neighbouring lanes share are taken in pairs instead of fours. With
// eight rows of activations, too few registers are left to load four rows ahead.
const PAIRS = STEPS == 8u;

@compute @workgroup_size(WG)
fn matmul_rows8_group(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let steps = (params.rows + STEPS - 1u) / STEPS;
    let t0 = number % steps * STEPS;
    let tile = number / steps;
    let before_b = (params.rows_a + params.tile - 1u) / params.tile;
    let before_c = before_b + (params.rows_b + params.tile - 1u) / params.tile;
    if (tile >= before_c + (params.rows_c + params.tile - 1u) / params.tile) {
        return;
    }
    let of_a = tile < before_b;
    let of_b = !of_a && tile < before_c;
    let rows_w = select(select(params.rows_c, params.rows_b, of_b), params.rows_a, of_a);
    let r0 = (tile - select(select(before_c, before_b, of_b), 0u, of_a)) * params.tile;
    let k = params.k;
    let blocks = k >> 5u;
    let last = params.rows - 1u - t0;
    let final_row = rows_w - 1u; //~ unowned: sign
    let count = min(params.tile, rows_w - r0);
    if (of_a) {
        let lane = wa_lane(lid);
        let pairs = in_pairs(wa_near);
        let step = select(4u, 2u, pairs); //~ apart: off by one
        var ab = wa_ab(r0, final_row, k, min(lane, blocks - 1u), lid); //~ apart
        var cd = wa_cd(r0, final_row, k, min(lane, blocks - 1u), lid); //~ dropped: sign; apart: minimum, off by one
        for (var first = 0u; first < blocks; first += WG) { //~ empty: comparison
            let block = min(first + lane, blocks - 1u);
            //~ apart: mask
            let held = held_load(t0, last, k, block, select(0u, lid & 1u, wa_near), select(0.0, 1.0, first + lane < blocks));
            rows8_add_share(first, held_share(held, wa_near, lid), wa_near, lid);
            for (var r = 0u; r < count; r += step) { //~ never: comparison
                // Loads the next rows, or the first rows of the next blocks.
                let ends = r + step >= count;
                let next = r0 + select(r + step, 0u, ends);
                let there = select(block, min(first + WG + lane, blocks - 1u), ends); //~ apart
                let now = ab;
                if (pairs) { //~ twice: guard dropped
                    ab = wa_ab(next, final_row, k, there, lid);
                }
                let a = held_dots(held, wa_of_a(now, k, block), wa_alike);
                let b = held_dots(held, wa_of_b(now, k, block), wa_alike);
                var sums = held_pair(a, b, rows_bit(wa_near), lid);
                if (!pairs) { //~ apart: guard dropped
                    ab = wa_ab(next, final_row, k, there, lid);
                    let c = held_dots(held, wa_of_c(now, cd, k, block), wa_alike);
                    let d = held_dots(held, wa_of_d(now, cd, k, block), wa_alike);
                    sums = held_pair(sums, held_pair(c, d, rows_bit(wa_near), lid), 2u * rows_bit(wa_near), lid);
                    cd = wa_cd(next, final_row, k, there, lid);
                }
                rows8_add(first, r, held_own(sums, wa_near, lid), wa_near, lid);
            }
        }
    } else if (of_b) {
        let lane = wb_lane(lid);
        let pairs = in_pairs(wb_near);
        let step = select(4u, 2u, pairs); //~ apart: off by one
        var ab = wb_ab(r0, final_row, k, min(lane, blocks - 1u), lid); //~ apart
        var cd = wb_cd(r0, final_row, k, min(lane, blocks - 1u), lid); //~ dropped: sign; apart: minimum, off by one
        for (var first = 0u; first < blocks; first += WG) { //~ empty: comparison
            let block = min(first + lane, blocks - 1u);
            //~ apart: mask
            let held = held_load(t0, last, k, block, select(0u, lid & 1u, wb_near), select(0.0, 1.0, first + lane < blocks));
            rows8_add_share(first, held_share(held, wb_near, lid), wb_near, lid);
            for (var r = 0u; r < count; r += step) { //~ never: comparison
                // Loads the next rows, or the first rows of the next blocks.
                let ends = r + step >= count;
                let next = r0 + select(r + step, 0u, ends);
                let there = select(block, min(first + WG + lane, blocks - 1u), ends); //~ apart
                let now = ab;
                if (pairs) { //~ twice: guard dropped
                    ab = wb_ab(next, final_row, k, there, lid);
                }
                let a = held_dots(held, wb_of_a(now, k, block), wb_alike);
                let b = held_dots(held, wb_of_b(now, k, block), wb_alike);
                var sums = held_pair(a, b, rows_bit(wb_near), lid);
                if (!pairs) { //~ apart: guard dropped
                    ab = wb_ab(next, final_row, k, there, lid);
                    let c = held_dots(held, wb_of_c(now, cd, k, block), wb_alike);
                    let d = held_dots(held, wb_of_d(now, cd, k, block), wb_alike);
                    sums = held_pair(sums, held_pair(c, d, rows_bit(wb_near), lid), 2u * rows_bit(wb_near), lid);
                    cd = wb_cd(next, final_row, k, there, lid);
                }
                rows8_add(first, r, held_own(sums, wb_near, lid), wb_near, lid);
            }
        }
    } else {
        let lane = wc_lane(lid);
        let pairs = in_pairs(wc_near);
        let step = select(4u, 2u, pairs); //~ apart: off by one
        var ab = wc_ab(r0, final_row, k, min(lane, blocks - 1u), lid); //~ apart
        var cd = wc_cd(r0, final_row, k, min(lane, blocks - 1u), lid); //~ dropped: sign; apart: minimum, off by one
        for (var first = 0u; first < blocks; first += WG) { //~ empty: comparison
            let block = min(first + lane, blocks - 1u);
            //~ apart: mask
            let held = held_load(t0, last, k, block, select(0u, lid & 1u, wc_near), select(0.0, 1.0, first + lane < blocks));
            rows8_add_share(first, held_share(held, wc_near, lid), wc_near, lid);
            for (var r = 0u; r < count; r += step) { //~ never: comparison
                // Loads the next rows, or the first rows of the next blocks.
                let ends = r + step >= count;
                let next = r0 + select(r + step, 0u, ends);
                let there = select(block, min(first + WG + lane, blocks - 1u), ends); //~ apart
                let now = ab;
                if (pairs) { //~ twice: guard dropped
                    ab = wc_ab(next, final_row, k, there, lid);
                }
                let a = held_dots(held, wc_of_a(now, k, block), wc_alike);
                let b = held_dots(held, wc_of_b(now, k, block), wc_alike);
                var sums = held_pair(a, b, rows_bit(wc_near), lid);
                if (!pairs) { //~ apart: guard dropped
                    ab = wc_ab(next, final_row, k, there, lid);
                    let c = held_dots(held, wc_of_c(now, cd, k, block), wc_alike);
                    let d = held_dots(held, wc_of_d(now, cd, k, block), wc_alike);
                    sums = held_pair(sums, held_pair(c, d, rows_bit(wc_near), lid), 2u * rows_bit(wc_near), lid);
                    cd = wc_cd(next, final_row, k, there, lid);
                }
                rows8_add(first, r, held_own(sums, wc_near, lid), wc_near, lid);
            }
        }
    }
    workgroupBarrier();
    for (var i = lid; i < MOST * STEPS; i += WG) {
        let r = i & (MOST - 1u);
        let t = i / MOST;
        if (t > last || r >= count) {
            continue;
        }
        let v = rows8_result(r, t);
        let at = (t0 + t) * rows_w + r0 + r;
        if (of_a) {
            ya[at] = select(v, v + bias_a[r0 + r], (params.biases & 1u) == 1u);
        } else if (of_b) {
            yb[at] = select(v, v + bias_b[r0 + r], (params.biases & 2u) == 2u);
        } else {
            yc[at] = select(v, v + bias_c[r0 + r], (params.biases & 4u) == 4u);
        }
    }
}
