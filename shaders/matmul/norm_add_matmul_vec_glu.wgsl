// packed = gelu(f gate x) * (f up x) in 8 bits (layout: pack_q8.wgsl) of a row x that this kernel
// makes (acts_norm_add.wgsl), with f the factor of the norm that readers of x apply, or 1
// gate, up [n, k] in one format with units, n a multiple of 32. One workgroup for 64 results, 8
// lanes for a row of each weight. Rows are short, so more lanes would spend their time on the
// reduction.
// Needs: workgroup_number (grid.wgsl), acts_make (acts_norm_add_quads.wgsl), gate_row, gate_steps,
// gate_step (the format of gate), up_row, up_step (the format of up), acts_row, acts_factor
// (dot_q8.wgsl), lanes_add4 (lanes.wgsl), activation (gelu4.wgsl), pack_q8_quad (q8_store.wgsl).
// Gives: WG, params.has_weight, params.has_u, params.k, params.has_factor, params.eps, params.pack,
// params.next_eps, packed. Bindings of pieces: a, b, w, s, u, h (acts_norm_add.wgsl).
struct Params { k: u32, n: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, exchange: u32, eps: f32, next_eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(7) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(9) var<storage, read_write> packed: array<u32>;

const WG = 512u;
const LANES = 8u;
// Rows of each weight, and quads of these rows, per workgroup.
const WEIGHT_ROWS = WG / LANES;
const QUADS = WEIGHT_ROWS / 4u;
var<workgroup> block: array<vec4<f32>, QUADS>;

@compute @workgroup_size(WG)
fn norm_add_matmul_vec_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number * WEIGHT_ROWS >= params.n) {
        return;
    }
    acts_make(number, lid);
    let k = params.k;
    let lane = lid % LANES;
    let local = lid / LANES;
    // Lanes past the last row read it again.
    let r = min(number * WEIGHT_ROWS + local, params.n - 1u);
    let of_gate = gate_row(r, k);
    let of_up = up_row(r, k);
    var sums = vec3<f32>(0.0);
    // extents.z is 1, but drivers do not know that, so they do not unroll the loop. They would read
    // the code of the unrolled steps from memory in every layer.
    for (var j = lane; j < gate_steps(k); j += LANES * extents.z) {
        let gated = gate_step(of_gate, of_gate, k, j, acts_row(0u, k));
        sums += vec3<f32>(gated.x, up_step(of_up, of_up, k, j, acts_row(0u, k)).x, gated.z); //~ alike: component
    }
    let total = lanes_add4(vec4<f32>(sums, 0.0), LANES, lid);
    let both = total.xy * acts_factor(total.z);
    if (lane == 0u) {
        block[local >> 2u][local & 3u] = activation(vec4<f32>(both.x, 0.0, 0.0, 0.0)).x * both.y;
    }
    workgroupBarrier();
    let quad = number * QUADS + lid;
    //~ race: comparison
    pack_q8_quad(0u, params.n, quad, lid < QUADS && quad < (params.n >> 2u), block[min(lid, QUADS - 1u)], 0.0, lid);
}
