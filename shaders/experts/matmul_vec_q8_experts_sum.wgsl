// y[t, r] = sum_j weights[t, j] sum_k w[experts[t, j] * stride + first + r, k] x[t, j, k] over the
// chosen experts j of row t x [T, chosen, k], the `chosen` rows of t as one row in 8 bits
// (pack_q8.wgsl), w [E stride, k] in a format with units, experts [T, chosen] u32, weights [T,
// chosen] f32, y [T, n] f32. One workgroup for two results of one row; its threads share the
// columns of all choices.
// Needs: workgroup_number (grid.wgsl), w_steps, w_step, w_row (the format of w), acts_row
// (dot_q8.wgsl), lanes_add4 (lanes.wgsl). Gives: x, WG.
struct Params { k: u32, n: u32, stride: u32, first: u32, chosen: u32, rows: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> experts: array<u32>;
@group(0) @binding(4) var<storage, read> weights: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const WG = 64u;
const WEIGHT_ROWS = 2u;

@compute @workgroup_size(WG)
fn matmul_vec_q8_experts_sum(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let groups = (params.n + WEIGHT_ROWS - 1u) / WEIGHT_ROWS;
    let number = workgroup_number(id, extents);
    let t = number / groups;
    if (t >= params.rows) {
        return;
    }
    let k = params.k;
    let steps = w_steps(k);
    let start = acts_row(t, params.chosen * k);
    let r = number % groups * WEIGHT_ROWS;
    let next = min(r + 1u, params.n - 1u);
    var sums = vec2<f32>(0.0);
    for (var i = lid; i < params.chosen * steps; i += WG) {
        let choice = i / steps;
        let slot = t * params.chosen + choice;
        let top = experts[slot] * params.stride + params.first;
        let at = start + choice * vec2<u32>(k >> 4u, k >> 5u);
        sums += weights[slot] * w_step(w_row(top + r, k), w_row(top + next, k), k, i % steps, at).xy;
    }
    let total = lanes_add4(vec4<f32>(sums, 0.0, 0.0), WG, lid);
    if (lid < WEIGHT_ROWS && r + lid < params.n) {
        y[t * params.n + r + lid] = total[lid];
    }
}
