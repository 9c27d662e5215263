// y[t, row_base + r] = f[t] sum_k w[r, k] x[t, k] + bias[row_base + r], with f the factor of the norm that was left to the readers of x, or 1
// x [rows, k] activations in 8 bits (pack_q8.wgsl), w [row_count, k] in a format with units, bias f32 (if has_bias), y [rows, n] f32. One
// workgroup of 32 lanes for four rows of w and STEPS of x (few_steps_*.wgsl); workgroups of the same w are neighbours.
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 32u;
const ROWS = 4u;

@compute @workgroup_size(WG)
fn matmul_few_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let tiles = (params.rows + STEPS - 1u) / STEPS;
    let rows_from = number % tiles * STEPS;
    let r = number / tiles * ROWS;
    if (r >= params.row_count) {
        return;
    }
    let k = params.k;
    let last = params.rows - 1u - rows_from;
    let final_row = params.row_count - 1u;
    let row_a = w_row(r, k);
    let row_b = w_row(min(r + 1u, final_row), k);
    let row_c = w_row(min(r + 2u, final_row), k);
    let row_d = w_row(min(r + 3u, final_row), k);
    // By name: arrays in a loop would leave registers.
    var of_a_low = vec4<f32>(0.0);
    var of_a_high = vec4<f32>(0.0);
    var of_b_low = vec4<f32>(0.0);
    var of_b_high = vec4<f32>(0.0);
    var of_c_low = vec4<f32>(0.0);
    var of_c_high = vec4<f32>(0.0);
    var of_d_low = vec4<f32>(0.0);
    var of_d_high = vec4<f32>(0.0);
    var share_low = vec4<f32>(0.0);
    var share_high = vec4<f32>(0.0);
    for (var u = lid; u < (k >> 5u); u += WG) {
        let a = w_unit(row_a, k, u);
        let b = w_unit(row_b, k, u);
        let c = w_unit(row_c, k, u);
        let d = w_unit(row_d, k, u);
        let halves = w_halves(u);
        let x0 = acts_load(rows_from + min(0u, last), k, halves);
        let x1 = acts_load(rows_from + min(1u, last), k, halves);
        of_a_low += vec4<f32>(dot_unit(a, x0), dot_unit(a, x1), 0.0, 0.0);
        of_b_low += vec4<f32>(dot_unit(b, x0), dot_unit(b, x1), 0.0, 0.0);
        of_c_low += vec4<f32>(dot_unit(c, x0), dot_unit(c, x1), 0.0, 0.0);
        of_d_low += vec4<f32>(dot_unit(d, x0), dot_unit(d, x1), 0.0, 0.0);
        share_low += vec4<f32>(x0.share, x1.share, 0.0, 0.0);
        if (STEPS > 2u) {
            let x2 = acts_load(rows_from + min(2u, last), k, halves);
            let x3 = acts_load(rows_from + min(3u, last), k, halves);
            of_a_low += vec4<f32>(0.0, 0.0, dot_unit(a, x2), dot_unit(a, x3));
            of_b_low += vec4<f32>(0.0, 0.0, dot_unit(b, x2), dot_unit(b, x3));
            of_c_low += vec4<f32>(0.0, 0.0, dot_unit(c, x2), dot_unit(c, x3));
            of_d_low += vec4<f32>(0.0, 0.0, dot_unit(d, x2), dot_unit(d, x3));
            share_low += vec4<f32>(0.0, 0.0, x2.share, x3.share);
        }
        if (STEPS > 4u) {
            let x4 = acts_load(rows_from + min(4u, last), k, halves);
            let x5 = acts_load(rows_from + min(5u, last), k, halves);
            let x6 = acts_load(rows_from + min(6u, last), k, halves);
            let x7 = acts_load(rows_from + min(7u, last), k, halves);
            of_a_high += vec4<f32>(dot_unit(a, x4), dot_unit(a, x5), dot_unit(a, x6), dot_unit(a, x7));
            of_b_high += vec4<f32>(dot_unit(b, x4), dot_unit(b, x5), dot_unit(b, x6), dot_unit(b, x7));
            of_c_high += vec4<f32>(dot_unit(c, x4), dot_unit(c, x5), dot_unit(c, x6), dot_unit(c, x7));
            of_d_high += vec4<f32>(dot_unit(d, x4), dot_unit(d, x5), dot_unit(d, x6), dot_unit(d, x7));
            share_high += vec4<f32>(x4.share, x5.share, x6.share, x7.share);
        }
    }
    let a = mat2x4<f32>(lanes_add4(of_a_low, WG, lid), lanes_add4(of_a_high, WG, lid));
    let b = mat2x4<f32>(lanes_add4(of_b_low, WG, lid), lanes_add4(of_b_high, WG, lid));
    let c = mat2x4<f32>(lanes_add4(of_c_low, WG, lid), lanes_add4(of_c_high, WG, lid));
    let d = mat2x4<f32>(lanes_add4(of_d_low, WG, lid), lanes_add4(of_d_high, WG, lid));
    let shares = mat2x4<f32>(lanes_add4(share_low, WG, lid), lanes_add4(share_high, WG, lid));
    // Every lane has all sums, and writes one of the 4 x STEPS.
    let t = lid >> 2u;
    let own = r + (lid & 3u);
    if (t >= STEPS || t > last || own > final_row) {
        return;
    }
    let high = t >> 2u;
    let of_t = vec4<f32>(a[high][t & 3u], b[high][t & 3u], c[high][t & 3u], d[high][t & 3u]);
    let at = params.row_base + own;
    let v = of_t[lid & 3u] * acts_factor(shares[high][t & 3u]);
    y[(rows_from + t) * params.n + at] = select(v, v + bias[at], params.has_bias == 1u);
}
