// y_a = f a x, y_b = f b x, y_c = f c x of a row x that this kernel makes (acts_norm_add.wgsl),
// with f the factor of the norm that readers of x apply, or 1
// wa [rows_a, k], wb [rows_b, k], wc [rows_c, k] in formats with units, y f32. One workgroup for 16
// rows of one of the weights, 32 lanes for two rows.
// Needs: workgroup_number (grid.wgsl), acts_make (acts_norm_add_eights.wgsl), wa_row, wa_steps,
// wa_step (the format of wa), acts_row, acts_factor (dot_q8.wgsl), wb_row, wb_steps, wb_step (the
// format of wb), wc_row, wc_steps, wc_step (the format of wc), lanes_add4 (lanes.wgsl). Gives: WG,
// params.has_weight, params.has_u, params.k, params.eps, params.next_eps, params.pack,
// params.has_factor. Bindings of pieces: a, b, w, s, u, h (acts_norm_add.wgsl).
struct Params { k: u32, rows_a: u32, rows_b: u32, rows_c: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, exchange: u32, eps: f32, next_eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(7) var<storage, read> wa: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read> wb: array<vec4<u32>>;
@group(0) @binding(9) var<storage, read> wc: array<vec4<u32>>;
@group(0) @binding(10) var<storage, read_write> ya: array<f32>;
@group(0) @binding(11) var<storage, read_write> yb: array<f32>;
@group(0) @binding(12) var<storage, read_write> yc: array<f32>;

const WG = 256u;
const LANES = 32u;
const WEIGHT_ROWS = 2u * WG / LANES;

@compute @workgroup_size(WG)
fn norm_add_matmul_vec(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let k = params.k;
    let before_b = (params.rows_a + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let before_c = before_b + (params.rows_b + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    if (number >= before_c + (params.rows_c + WEIGHT_ROWS - 1u) / WEIGHT_ROWS) {
        return;
    }
    acts_make(number, lid);
    let lane = lid % LANES;
    let local = 2u * (lid / LANES);
    var sums = vec3<f32>(0.0);
    if (number < before_b) {
        let r = WEIGHT_ROWS * number + local;
        let first = wa_row(min(r, params.rows_a - 1u), k);
        let second = wa_row(min(r + 1u, params.rows_a - 1u), k);
        for (var j = lane; j < wa_steps(k); j += LANES) {
            sums += wa_step(first, second, k, j, acts_row(0u, k));
        }
    } else if (number < before_c) {
        let r = WEIGHT_ROWS * (number - before_b) + local;
        let first = wb_row(min(r, params.rows_b - 1u), k);
        let second = wb_row(min(r + 1u, params.rows_b - 1u), k);
        for (var j = lane; j < wb_steps(k); j += LANES) {
            sums += wb_step(first, second, k, j, acts_row(0u, k));
        }
    } else {
        let r = WEIGHT_ROWS * (number - before_c) + local;
        let first = wc_row(min(r, params.rows_c - 1u), k);
        let second = wc_row(min(r + 1u, params.rows_c - 1u), k);
        for (var j = lane; j < wc_steps(k); j += LANES) {
            sums += wc_step(first, second, k, j, acts_row(0u, k));
        }
    }
    let total = lanes_add4(vec4<f32>(sums, 0.0), LANES, lid);
    if (lane >= 2u) { //~ race: comparison, off by one, guard dropped
        return;
    }
    let v = total[lane] * acts_factor(total.z);
    if (number < before_b) {
        let r = WEIGHT_ROWS * number + local + lane;
        if (r < params.rows_a) {
            ya[r] = v;
        }
    } else if (number < before_c) {
        let r = WEIGHT_ROWS * (number - before_b) + local + lane;
        if (r < params.rows_b) {
            yb[r] = v;
        }
    } else {
        let r = WEIGHT_ROWS * (number - before_c) + local + lane;
        if (r < params.rows_c) {
            yc[r] = v;
        }
    }
}
