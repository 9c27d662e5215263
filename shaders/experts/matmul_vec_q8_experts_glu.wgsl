// packed[s] = activation(f g[s]) * (f u[s]) in 8 bits for every slot s (a row of the step and one
// of its choices), with g[s, r] = sum_k gate[experts[s] * stride + gate_first + r, k] x[s / chosen,
// k], u alike from up, and f the factor of the norm that readers of x apply, or 1; activation is
// silu or gelu (tanh form)
// x [T, k] in 8 bits (pack_q8.wgsl), gate, up [E stride, k] in one format with units, packed [T,
// chosen n] in 8 bits, n a multiple of 32. An earlier kernel chose the experts, or this one does
// (pieces/chosen_before.wgsl, pieces/chosen_here.wgsl). One workgroup for a block of 32 results of
// one slot: ROW_LANES lanes for two rows of each weight.
// Needs: ROW_LANES (the variant), workgroup_number (grid.wgsl), ROUTERS, route_row, expert_of
// (chosen_before.wgsl or chosen_here.wgsl), gate_row, gate_steps, gate_step (the format of gate),
// up_row, up_step (the format of up), acts_row, acts_factor (dot_q8.wgsl), lanes_add4 (lanes.wgsl),
// activation (slot activation), pack_q8_quad (q8_store.wgsl). Gives: params.chosen, x, WG,
// params.count, params.normalize, params.has_scale. Bindings of pieces: experts, packed
// (chosen_before.wgsl), logits, scale, experts, weights, packed (chosen_here.wgsl).
struct Params {
    k: u32, n: u32, gate_stride: u32, gate_first: u32, up_stride: u32, up_first: u32, chosen: u32, rows: u32, exchange: u32,
    count: u32, normalize: u32, has_scale: u32
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;

const WG = 16u * ROW_LANES;
var<workgroup> block: array<vec4<f32>, 8>;

@compute @workgroup_size(WG)
fn matmul_vec_q8_experts_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let blocks = params.n >> 5u;
    let products = params.chosen * blocks;
    let row = number / (products + ROUTERS);
    if (row >= params.rows) {
        return;
    }
    let place = number % (products + ROUTERS);
    if (place == products) {
        route_row(row, lid);
        return;
    }
    let choice = place / blocks;
    let top = 32u * (place % blocks);
    let k = params.k;
    let lane = lid % ROW_LANES;
    let local = 2u * (lid / ROW_LANES);
    let r = top + local;
    let expert = expert_of(row, choice, lid);
    let gate_r = expert * params.gate_stride + params.gate_first + r;
    let up_r = expert * params.up_stride + params.up_first + r;
    let gate_at = vec2<u32>(gate_row(gate_r, k), gate_row(gate_r + 1u, k));
    let up_at = vec2<u32>(up_row(up_r, k), up_row(up_r + 1u, k));
    let at = acts_row(row, k);
    var gates = vec3<f32>(0.0);
    var ups = vec2<f32>(0.0);
    for (var j = lane; j < gate_steps(k); j += ROW_LANES) {
        gates += gate_step(gate_at.x, gate_at.y, k, j, at);
        ups += up_step(up_at.x, up_at.y, k, j, at).xy;
    }
    let total = lanes_add4(vec4<f32>(gates.xy, ups), ROW_LANES, lid);
    let shares = lanes_add4(vec4<f32>(gates.z, 0.0, 0.0, 0.0), ROW_LANES, lid);
    let both = total * acts_factor(shares.x);
    let glu = activation(vec4<f32>(both.xy, 0.0, 0.0)).xy * both.zw;
    if (lane < 2u) {
        block[(local + lane) >> 2u][(local + lane) & 3u] = glu[lane];
    }
    workgroupBarrier();
    let first = (choice * params.n + top) >> 2u;
    pack_q8_quad(row, params.chosen * params.n, first + lid, lid < 8u, block[min(lid, 7u)], 0.0, lid); //~ dropped: off by one
}
