// y_a = f a x + bias_a, y_b = f b x + bias_b, y_c = f c x + bias_c of one row x, which may be
// normed, with f the factor of its norm, or 1 (acts_eights.wgsl)
// a [rows_a, k], b [rows_b, k], c [rows_c, k] in any formats, k a multiple of 8, biases f32
// (`biases` has a bit for each, the lowest for bias_a), y f32. One workgroup for WEIGHT_ROWS rows
// of one of the weights, as in matmul_vec.wgsl.
// Needs: WG (the variant), workgroup_number (grid.wgsl), Part, parts_leave, parts_sum
// (vec_sums.wgsl), wa_begin, wa_part, wa_four (the format of wa), wb_begin, wb_part, wb_four (the
// format of wb), wc_begin, wc_part, wc_four (the format of wc), acts_factor (acts_eights.wgsl).
// Gives: params.k, params.has_norm, params.eps, params.has_weight. Bindings of pieces: h, u
// (acts_eights.wgsl).
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

const WEIGHT_ROWS = 4u;

@compute @workgroup_size(WG)
fn norm_matmul_vec_group(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let k = params.k;
    let before_b = (params.rows_a + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let before_c = before_b + (params.rows_b + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    if (number >= before_c + (params.rows_c + WEIGHT_ROWS - 1u) / WEIGHT_ROWS) {
        return;
    }
    var r = WEIGHT_ROWS * number;
    var rows = params.rows_a;
    var part: Part;
    if (number < before_b) {
        wa_begin(lid);
        part = wa_part(wa_four(r, rows, k), k, 0u, lid);
    } else if (number < before_c) {
        r = WEIGHT_ROWS * (number - before_b);
        rows = params.rows_b;
        wb_begin(lid);
        part = wb_part(wb_four(r, rows, k), k, 0u, lid);
    } else {
        r = WEIGHT_ROWS * (number - before_c);
        rows = params.rows_c;
        wc_begin(lid);
        part = wc_part(wc_four(r, rows, k), k, 0u, lid);
    }
    parts_leave(part, params.has_norm == 1u, lid);
    r += lid;
    if (lid >= WEIGHT_ROWS || r >= rows) { //~ race: comparison
        return;
    }
    let v = parts_sum(lid) * acts_factor();
    if (number < before_b) {
        ya[r] = select(v, v + bias_a[r], (params.biases & 1u) == 1u);
    } else if (number < before_c) {
        yb[r] = select(v, v + bias_b[r], (params.biases & 2u) == 2u);
    } else {
        yc[r] = select(v, v + bias_c[r], (params.biases & 4u) == 4u);
    }
}
