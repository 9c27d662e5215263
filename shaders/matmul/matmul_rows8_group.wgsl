// y_a = f[t] a x[t] + bias_a, y_b = f[t] b x[t] + bias_b, y_c = f[t] c x[t] + bias_c, with f the
// factor of the norm that readers of x apply, or 1
// x [rows, k] activations in 8 bits (pack_q8.wgsl), a [rows_a, k], b [rows_b, k], c [rows_c, k] in
// formats with units, biases f32 (`biases` has a bit for each, the lowest for bias_a), y [rows,
// rows_a | rows_b | rows_c] f32. Works like matmul_rows8.wgsl. Each weight has a format of its own
// and as many workgroups as it needs.
// Needs: STEPS (slot steps), WG, rows8_result (rows8_sums.wgsl), workgroup_number (grid.wgsl),
// wa_rows8 (the format of wa), wb_rows8 (the format of wb), wc_rows8 (the format of wc). Gives:
// MOST, x, PAIRS, params.many.
struct Params { k: u32, rows: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, tile: u32, exchange: u32, many: u32 }
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
    let last = params.rows - 1u - t0;
    let final_row = rows_w - 1u;
    let count = min(params.tile, rows_w - r0);
    if (of_a) {
        wa_rows8(t0, last, r0, final_row, count, k, lid);
    } else if (of_b) {
        wb_rows8(t0, last, r0, final_row, count, k, lid);
    } else {
        wc_rows8(t0, last, r0, final_row, count, k, lid);
    }
    workgroupBarrier();
    for (var i = lid; i < MOST * STEPS; i += WG) { //~ race: comparison
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
