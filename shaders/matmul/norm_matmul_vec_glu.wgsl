// y = activation(f gate x) * (f up x) of one row x, which may be normed, with f the factor of its
// norm, or 1 (acts_eights.wgsl); activation is silu or gelu (tanh form)
// gate, up [n, k] in any formats, k a multiple of 8, y f32 [n]. One workgroup for RESULTS rows of
// each weight. Its threads walk all of them eight columns at a time.
// Needs: workgroup_number (grid.wgsl), gate_four, gate_begin, gate_load8 (the format of gate),
// up_four, up_begin, up_load8 (the format of up), Part, dot8, parts_leave, parts_sum
// (vec_sums.wgsl), acts8, acts_factor (acts_eights.wgsl), activation (slot activation). Gives:
// params.k, params.has_norm, params.eps, params.has_weight, TEAM, WG. Bindings of pieces: h, u
// (acts_eights.wgsl).
struct Params { k: u32, n: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const WG = 64u;
const TEAM = WG;
const RESULTS = 2u;

@compute @workgroup_size(WG)
fn norm_matmul_vec_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let r = RESULTS * workgroup_number(id, extents);
    if (r >= params.n) {
        return;
    }
    let k = params.k;
    let of_gate = gate_four(r, params.n, k);
    let of_up = up_four(r, params.n, k);
    gate_begin(lid);
    up_begin(lid);
    var part = Part();
    for (var i = lid; i < (k >> 3u); i += WG) {
        let a = gate_load8(of_gate.x, k, i);
        let b = gate_load8(of_gate.y, k, i);
        let c = up_load8(of_up.x, k, i);
        let d = up_load8(of_up.y, k, i);
        let acts = acts8(0u, i);
        part.sums += vec4<f32>(dot8(a, acts.v), dot8(b, acts.v), dot8(c, acts.v), dot8(d, acts.v));
        part.share += acts.share;
    }
    parts_leave(part, params.has_norm == 1u, lid);
    if (lid < RESULTS && r + lid < params.n) {
        let factor = acts_factor();
        let gated = activation(vec4<f32>(parts_sum(lid) * factor, 0.0, 0.0, 0.0)).x;
        y[r + lid] = gated * (parts_sum(RESULTS + lid) * factor);
    }
}
