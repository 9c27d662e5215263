// packed[t] = activation(f[t] gate x[t]) * (f[t] up x[t]) in 8 bits, with f the factor of the norm
// that readers of x apply, or 1
// x [rows, k] and packed [rows, n] activations in 8 bits (pack_q8.wgsl), gate, up [n, k] in one
// format with units, n a multiple of 32; activation is silu or gelu (tanh form). One workgroup for
// 32 rows of each weight and STEPS rows of x, as in matmul_rows8.wgsl; TEAMS teams of threads share
// the rows of weights.
// Needs: TEAMS, TEAM (the variant), STEPS (slot steps), WG, rows8_result (rows8_sums.wgsl),
// workgroup_number (grid.wgsl), gate_hold, gate_add, gate_ahead (the format of gate), up_add,
// up_ahead (the format of up), activation (slot activation), pack_q8_quad (q8_store.wgsl). Gives:
// MOST, x, PAIRS, params.many, packed.
struct Params { k: u32, n: u32, rows: u32, exchange: u32, many: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> packed: array<u32>;

// Rows of both weights per workgroup.
const MOST = 64u;
// Rows of either weight that a team has.
const SHARE = 32u / TEAMS;
// Eight threads pack the results of each row of x.
const_assert 8u * STEPS <= WG;
// Rows of weights are always taken four at a time.
const PAIRS = false;

@compute @workgroup_size(WG)
fn matmul_rows8_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let steps = (params.rows + STEPS - 1u) / STEPS;
    let t0 = number % steps * STEPS;
    let r0 = number / steps * 32u;
    if (r0 >= params.n) {
        return;
    }
    let k = params.k;
    let blocks = k >> 5u;
    let last = params.rows - 1u - t0;
    let own = lid / TEAM * SHARE;
    // Always SHARE. A driver that knew this would unroll the loops.
    let count = min(SHARE, params.n - r0); //~ never: sign
    let final_row = params.n - 1u;
    for (var first = 0u; first < blocks; first += TEAM) {
        let held = gate_hold(t0, last, k, first, lid);
        _ = gate_add(held, gate_ahead(r0 + own, final_row, k, first, lid), r0 + own, final_row, count, own, k, first, lid);
        _ = up_add(held, up_ahead(r0 + own, final_row, k, first, lid), r0 + own, final_row, count, 32u + own, k, first, lid);
    }
    workgroupBarrier();
    let t = min(lid >> 3u, STEPS - 1u);
    let r = 4u * (lid & 7u);
    let gated = activation(vec4<f32>(rows8_result(r, t), rows8_result(r + 1u, t), rows8_result(r + 2u, t), rows8_result(r + 3u, t)));
    let raised = vec4<f32>(rows8_result(r + 32u, t), rows8_result(r + 33u, t), rows8_result(r + 34u, t), rows8_result(r + 35u, t));
    let inside = lid < 8u * STEPS && t <= last;
    pack_q8_quad(t0 + t, params.n, (r0 + r) >> 2u, inside, gated * raised, 0.0, lid);
}
