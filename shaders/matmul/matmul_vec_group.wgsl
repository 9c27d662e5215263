// y_a = f a x + bias_a, y_b = f b x + bias_b, y_c = f c x + bias_c, with f the factor of the norm
// that readers of x apply, or 1
// x one row of activations in 8 bits (pack_q8.wgsl), a [rows_a, k], b [rows_b, k], c [rows_c, k] in
// formats with units, biases f32 (`biases` has a bit for each, the lowest for bias_a), y f32. One
// workgroup of 32 lanes for two rows of one of the weights.
// Needs: workgroup_number (grid.wgsl), wa_row, wa_steps, wa_step (the format of wa), acts_row,
// acts_factor (dot_q8.wgsl), wb_row, wb_steps, wb_step (the format of wb), wc_row, wc_steps,
// wc_step (the format of wc), lanes_each4, lanes_other (lanes_near.wgsl). Gives: x, WG.
struct Params { k: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, exchange: u32 }
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

const WG = 32u;
const WEIGHT_ROWS = 2u;
const QUARTER = WG / 4u;

@compute @workgroup_size(WG)
fn matmul_vec_group(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let k = params.k;
    let before_b = (params.rows_a + 1u) / WEIGHT_ROWS;
    let before_c = before_b + (params.rows_b + 1u) / WEIGHT_ROWS;
    if (number >= before_c + (params.rows_c + 1u) / WEIGHT_ROWS) {
        return;
    }
    var sums = vec3<f32>(0.0);
    if (number < before_b) {
        let first = wa_row(WEIGHT_ROWS * number, k);
        let second = wa_row(min(WEIGHT_ROWS * number + 1u, params.rows_a - 1u), k);
        for (var j = lid; j < wa_steps(k); j += WG) {
            sums += wa_step(first, second, k, j, acts_row(0u, k));
        }
    } else if (number < before_c) {
        let r = WEIGHT_ROWS * (number - before_b);
        let first = wb_row(r, k);
        let second = wb_row(min(r + 1u, params.rows_b - 1u), k);
        for (var j = lid; j < wb_steps(k); j += WG) {
            sums += wb_step(first, second, k, j, acts_row(0u, k));
        }
    } else {
        let r = WEIGHT_ROWS * (number - before_c);
        let first = wc_row(r, k);
        let second = wc_row(min(r + 1u, params.rows_c - 1u), k);
        for (var j = lid; j < wc_steps(k); j += WG) {
            sums += wc_step(first, second, k, j, acts_row(0u, k));
        }
    }
    let total = lanes_each4(sums.xyzz, WG, lid);
    let shares = lanes_other(total, WG / 2u, lid); //~ clamped: product
    if (lid != 0u && lid != QUARTER) { //~ race: off by one, guard dropped
        return;
    }
    let v = total * acts_factor(shares);
    let mine = lid / QUARTER;
    if (number < before_b) {
        let r = WEIGHT_ROWS * number + mine;
        if (r < params.rows_a) {
            ya[r] = select(v, v + bias_a[r], (params.biases & 1u) == 1u);
        }
    } else if (number < before_c) {
        let r = WEIGHT_ROWS * (number - before_b) + mine;
        if (r < params.rows_b) {
            yb[r] = select(v, v + bias_b[r], (params.biases & 2u) == 2u);
        }
    } else {
        let r = WEIGHT_ROWS * (number - before_c) + mine;
        if (r < params.rows_c) {
            yc[r] = select(v, v + bias_c[r], (params.biases & 4u) == 4u);
        }
    }
}
