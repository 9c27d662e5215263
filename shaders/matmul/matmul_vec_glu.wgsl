// packed = activation(f gate x) * (f up x) in 8 bits (layout: pack_q8.wgsl), with f the factor of
// the norm that readers of x apply, or 1; activation is silu or gelu (tanh form)
// x one row of activations in 8 bits, gate, up [n, k] in one format with units, n a multiple of 32.
// One workgroup for a block of 32 results: 16 lanes for two rows of each weight.
// Needs: workgroup_number (grid.wgsl), gate_row, gate_steps, gate_step (the format of gate),
// up_row, up_step (the format of up), acts_row, acts_factor (dot_q8.wgsl), lanes_add4 (lanes.wgsl),
// activation (slot activation), pack_q8_quad (q8_store.wgsl). Gives: x, WG, packed.
struct Params { k: u32, n: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> packed: array<u32>;

const WG = 256u;
const LANES = 16u;
var<workgroup> block: array<vec4<f32>, 8>;

@compute @workgroup_size(WG)
fn matmul_vec_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number >= params.n >> 5u) {
        return;
    }
    let k = params.k;
    let lane = lid % LANES;
    let local = 2u * (lid / LANES);
    let r = 32u * number + local;
    let gate_first = gate_row(r, k);
    let gate_second = gate_row(r + 1u, k);
    let up_first = up_row(r, k);
    let up_second = up_row(r + 1u, k);
    var gates = vec3<f32>(0.0);
    var ups = vec2<f32>(0.0);
    for (var j = lane; j < gate_steps(k); j += LANES) {
        gates += gate_step(gate_first, gate_second, k, j, acts_row(0u, k));
        ups += up_step(up_first, up_second, k, j, acts_row(0u, k)).xy;
    }
    let total = lanes_add4(vec4<f32>(gates.xy, ups), LANES, lid);
    let shares = lanes_add4(vec4<f32>(gates.z, 0.0, 0.0, 0.0), LANES, lid);
    let both = total * acts_factor(shares.x);
    let glu = activation(vec4<f32>(both.xy, 0.0, 0.0)).xy * both.zw;
    if (lane < 2u) {
        block[(local + lane) >> 2u][(local + lane) & 3u] = glu[lane];
    }
    workgroupBarrier();
    pack_q8_quad(0u, params.n, 8u * number + lid, lid < 8u, block[min(lid, 7u)], 0.0, lid); //~ dropped: off by one
}
