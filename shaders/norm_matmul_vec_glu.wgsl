// packed = 8 bits of gelu(f gate x) * (f up x)   (pack_q8.wgsl has the layout) of a row x that is made here (acts_norm_add.wgsl), with f the factor of the
// norm that was left to the readers of x, or 1
// gate, up [n, k] in one format with units, n a multiple of 32. One workgroup for 64 results, 8 lanes for two rows of either weight: rows are short, so
// that more lanes would spend their time on sums.
struct Params { k: u32, n: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, exchange: u32, eps: f32, next_eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(7) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(9) var<storage, read_write> packed: array<u32>;

const WG = 256u;
const LANES = 8u;
// Rows of either weight, and their quads, that a workgroup takes.
const ROWS = 2u * WG / LANES;
const QUADS = ROWS / 4u;
var<workgroup> block: array<vec4<f32>, QUADS>;

@compute @workgroup_size(WG)
fn norm_matmul_vec_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number * ROWS >= params.n) {
        return;
    }
    acts_make(number, lid);
    let k = params.k;
    let lane = lid % LANES;
    let local = 2u * (lid / LANES);
    // Pairs past the last row repeat it.
    let r = min(number * ROWS + local, params.n - 2u);
    let gate_first = gate_row(r, k);
    let gate_second = gate_row(r + 1u, k);
    let up_first = up_row(r, k);
    let up_second = up_row(r + 1u, k);
    var gates = vec3<f32>(0.0);
    var ups = vec2<f32>(0.0);
    for (var j = lane; j < gate_steps(k); j += LANES) {
        gates += gate_step(gate_first, gate_second, k, j);
        ups += up_step(up_first, up_second, k, j).xy;
    }
    let total = lanes_add4(vec4<f32>(gates.xy, ups), LANES, lid);
    let shares = lanes_add4(vec4<f32>(gates.z, 0.0, 0.0, 0.0), LANES, lid);
    let both = total * acts_factor(shares.x);
    let glu = activation(vec4<f32>(both.xy, 0.0, 0.0)).xy * both.zw;
    if (lane < 2u) {
        block[local >> 2u][(local + lane) & 3u] = glu[lane];
    }
    workgroupBarrier();
    let quad = number * QUADS + lid;
    pack_q8_quad(0u, params.n, quad, lid < QUADS && quad < (params.n >> 2u), block[min(lid, QUADS - 1u)], 0.0, lid);
}
