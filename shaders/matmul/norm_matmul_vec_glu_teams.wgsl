// y = activation(f gate x) * (f up x) of one row x, as in norm_matmul_vec_glu.wgsl, for weights of
// many rows
// The operands are as in norm_matmul_vec_glu.wgsl, with weights in IQ4_NL or IQ4_XS. One workgroup
// for RESULTS rows of each weight, four rows to a team of TEAM threads. One half of the teams has
// rows of gate, the other half has rows of up. The workgroup stages x (acts_staged.wgsl).
// Needs: workgroup_number (grid.wgsl), gate_begin, gate_add, gate_four (the format of gate),
// up_begin, up_add, up_four (the format of up), Part, parts_leave, parts_sum (vec_sums.wgsl),
// STAGE, staged_make, acts_factor (acts_staged.wgsl), activation (slot activation). Gives:
// params.k, WG, params.has_norm, params.eps, params.has_weight, TEAM. Bindings of pieces: h, u
// (acts_staged.wgsl).
struct Params { k: u32, n: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const WG = 128u;
const TEAM = 16u;
const RESULTS = WG / TEAM * 2u;

@compute @workgroup_size(WG)
fn norm_matmul_vec_glu_teams(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let r = RESULTS * workgroup_number(id, extents);
    if (r >= params.n) {
        return;
    }
    let k = params.k;
    gate_begin(lid);
    up_begin(lid);
    let lane = lid % TEAM;
    let four = r + lid % (WG / 2u) / TEAM * 4u;
    var part = Part();
    for (var first = 0u; first < k; first += STAGE) {
        part.share += staged_make(first, lid);
        let last = min(first + STAGE, k);
        if (lid < WG / 2u) {
            part.sums = gate_add(part.sums, gate_four(four, params.n, k), k, first, last, lane);
        } else {
            part.sums = up_add(part.sums, up_four(four, params.n, k), k, first, last, lane);
        }
    }
    parts_leave(part, params.has_norm == 1u, lid);
    if (lid < RESULTS && r + lid < params.n) {
        let factor = acts_factor();
        let gated = activation(vec4<f32>(parts_sum(lid) * factor, 0.0, 0.0, 0.0)).x;
        y[r + lid] = gated * (parts_sum(RESULTS + lid) * factor);
    }
}
