// y_a = f a x + bias_a, y_b = f b x + bias_b, y_c = f c x + bias_c of a normed row x that this
// kernel makes (acts_norm.wgsl), with f the norm's factor
// a [rows_a, k], b [rows_b, k], c [rows_c, k] in formats with units, biases f32 (`biases` has a bit
// for each, the lowest for bias_a), y f32. One workgroup for 16 rows of one of the weights, 32
// lanes each.
// Needs: workgroup_number (grid.wgsl), acts_make (acts_norm.wgsl), wa_row, wa_steps, wa_step (the
// format of wa), acts_row, acts_factor (dot_q8.wgsl), wb_row, wb_steps, wb_step (the format of wb),
// wc_row, wc_steps, wc_step (the format of wc), lanes_add2 (lanes_near.wgsl). Gives: params.k, WG,
// params.has_weight, params.has_norm, params.eps. Bindings of pieces: h, u (acts_norm.wgsl).
struct Params { k: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read> wa: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> wb: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> wc: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> bias_a: array<f32>;
@group(0) @binding(7) var<storage, read> bias_b: array<f32>;
@group(0) @binding(8) var<storage, read> bias_c: array<f32>;
@group(0) @binding(9) var<storage, read_write> ya: array<f32>;
@group(0) @binding(10) var<storage, read_write> yb: array<f32>;
@group(0) @binding(11) var<storage, read_write> yc: array<f32>;

const WG = 512u;
const LANES = 32u;
const WEIGHT_ROWS = WG / LANES;

@compute @workgroup_size(WG)
fn norm_pack_matmul_vec(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let k = params.k;
    let before_b = (params.rows_a + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let before_c = before_b + (params.rows_b + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    if (number >= before_c + (params.rows_c + WEIGHT_ROWS - 1u) / WEIGHT_ROWS) {
        return;
    }
    acts_make(lid);
    let lane = lid % LANES;
    let local = lid / LANES;
    // The steps take two rows. Given the same row twice, they load and multiply it once.
    var sums = vec2<f32>(0.0);
    if (number < before_b) {
        let row = wa_row(min(WEIGHT_ROWS * number + local, params.rows_a - 1u), k);
        for (var j = lane; j < wa_steps(k); j += LANES) {
            sums += wa_step(row, row, k, j, acts_row(0u, k)).xz;
        }
    } else if (number < before_c) {
        let row = wb_row(min(WEIGHT_ROWS * (number - before_b) + local, params.rows_b - 1u), k);
        for (var j = lane; j < wb_steps(k); j += LANES) {
            sums += wb_step(row, row, k, j, acts_row(0u, k)).xz;
        }
    } else {
        let row = wc_row(min(WEIGHT_ROWS * (number - before_c) + local, params.rows_c - 1u), k);
        for (var j = lane; j < wc_steps(k); j += LANES) {
            sums += wc_step(row, row, k, j, acts_row(0u, k)).xz;
        }
    }
    let total = lanes_add2(sums, LANES, lid);
    if (lane > 0u) { //~ twice: off by one, guard dropped
        return;
    }
    let v = total.x * acts_factor(total.y);
    if (number < before_b) {
        let r = WEIGHT_ROWS * number + local;
        if (r < params.rows_a) {
            ya[r] = select(v, v + bias_a[r], (params.biases & 1u) == 1u);
        }
    } else if (number < before_c) {
        let r = WEIGHT_ROWS * (number - before_b) + local;
        if (r < params.rows_b) {
            yb[r] = select(v, v + bias_b[r], (params.biases & 2u) == 2u);
        }
    } else {
        let r = WEIGHT_ROWS * (number - before_c) + local;
        if (r < params.rows_c) {
            yc[r] = select(v, v + bias_c[r], (params.biases & 4u) == 4u);
        }
    }
}
