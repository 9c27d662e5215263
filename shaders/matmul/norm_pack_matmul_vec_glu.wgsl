// packed = activation(f gate x) * (f up x) in 8 bits (layout: pack_q8.wgsl) of a normed row x that
// this kernel makes (acts_norm.wgsl), with f the norm's factor; activation is silu or gelu (tanh
// form)
// gate, up [n, k] in one format with units, k at most 1024, n a multiple of 32. One workgroup for a
// block of 32 results: 32 lanes for two rows of each weight.
// Needs: workgroup_number (grid.wgsl), gate_lane_unit, gate_row, gate_lane_halves, gate_lane_dot
// (the format of gate), up_lane_unit, up_row, up_lane_dot (the format of up), acts_make
// (acts_norm.wgsl), acts_load, acts_row, acts_factor (dot_q8.wgsl), lanes_add, lanes_each4,
// lanes_other (lanes_near.wgsl), activation (slot activation), pack_q8_quad (q8_store.wgsl). Gives:
// params.k, WG, params.has_weight, params.has_norm, params.eps, packed. Bindings of pieces: h, u
// (acts_norm.wgsl).
struct Params { k: u32, n: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> packed: array<u32>;

const WG = 512u;
const LANES = 32u;
const QUARTER = LANES / 4u;
var<workgroup> block: array<vec4<f32>, 8>;

@compute @workgroup_size(WG)
fn norm_pack_matmul_vec_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number >= params.n >> 5u) {
        return;
    }
    let k = params.k;
    let lane = lid % LANES;
    let local = 2u * (lid / LANES);
    let r = 32u * number + local;
    // A lane has at most one unit of each row. These units are loaded while the workgroup packs x.
    let units = k >> 5u;
    let inside = lane < units;
    let j = min(lane, units - 1u);
    let gate_first = gate_lane_unit(gate_row(r, k), k, j);
    let gate_second = gate_lane_unit(gate_row(r + 1u, k), k, j);
    let up_first = up_lane_unit(up_row(r, k), k, j);
    let up_second = up_lane_unit(up_row(r + 1u, k), k, j);
    acts_make(lid);
    let acts = acts_load(acts_row(0u, k), gate_lane_halves(k, j));
    let gates = vec2<f32>(gate_lane_dot(gate_first, acts), gate_lane_dot(gate_second, acts));
    let ups = vec2<f32>(up_lane_dot(up_first, acts), up_lane_dot(up_second, acts));
    let factor = acts_factor(lanes_add(select(0.0, acts.share, inside), LANES, lid));
    let one = lanes_each4(select(vec4<f32>(0.0), vec4<f32>(gates, ups), inside), LANES, lid) * factor;
    let up_one = lanes_other(one, LANES / 2u, lid);
    let row = local + lane / QUARTER;
    if (lane == 0u || lane == QUARTER) { //~ twice: off by one
        block[row >> 2u][row & 3u] = activation(vec4<f32>(one, 0.0, 0.0, 0.0)).x * up_one;
    }
    workgroupBarrier();
    pack_q8_quad(0u, params.n, 8u * number + lid, lid < 8u, block[min(lid, 7u)], 0.0, lid); //~ dropped: off by one
}
