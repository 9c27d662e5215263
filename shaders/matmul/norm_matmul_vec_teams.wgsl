// y_a = f a x + bias_a, y_b = f b x + bias_b, y_c = f c x + bias_c of one row x, as in
// norm_matmul_vec_group.wgsl, for weights of many rows
// The operands are as in norm_matmul_vec_group.wgsl, with weights in IQ4_NL or IQ4_XS. One
// workgroup for WEIGHT_ROWS rows of one of the weights, four rows to a team of TEAM threads. The
// workgroup stages x (acts_staged.wgsl).
// Needs: workgroup_number (grid.wgsl), wa_begin, wa_add, wa_four (the format of wa), wb_begin,
// wb_add, wb_four (the format of wb), wc_begin, wc_add, wc_four (the format of wc), Part,
// parts_leave, parts_sum (vec_sums.wgsl), STAGE, staged_make, acts_factor (acts_staged.wgsl).
// Gives: params.k, WG, params.has_norm, params.eps, params.has_weight, TEAM. Bindings of pieces: h,
// u (acts_staged.wgsl).
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

const WG = 128u;
const TEAM = 16u;
const WEIGHT_ROWS = WG / TEAM * 4u;

@compute @workgroup_size(WG)
fn norm_matmul_vec_teams(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let k = params.k;
    let before_b = (params.rows_a + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let before_c = before_b + (params.rows_b + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    if (number >= before_c + (params.rows_c + WEIGHT_ROWS - 1u) / WEIGHT_ROWS) {
        return;
    }
    var r = WEIGHT_ROWS * number;
    var rows = params.rows_a;
    if (number < before_b) {
        wa_begin(lid);
    } else if (number < before_c) {
        r = WEIGHT_ROWS * (number - before_b);
        rows = params.rows_b;
        wb_begin(lid);
    } else {
        r = WEIGHT_ROWS * (number - before_c);
        rows = params.rows_c;
        wc_begin(lid);
    }
    let four = r + lid / TEAM * 4u;
    let lane = lid % TEAM;
    var part = Part();
    for (var first = 0u; first < k; first += STAGE) {
        part.share += staged_make(first, lid);
        let last = min(first + STAGE, k);
        if (number < before_b) {
            part.sums = wa_add(part.sums, wa_four(four, rows, k), k, first, last, lane);
        } else if (number < before_c) {
            part.sums = wb_add(part.sums, wb_four(four, rows, k), k, first, last, lane);
        } else {
            part.sums = wc_add(part.sums, wc_four(four, rows, k), k, first, last, lane);
        }
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
