// packed[t] = activation(f[t] gate x[t]) * (f[t] up x[t]) in 8 bits, with f the factor of the norm
// that readers of x apply, or 1
// x [rows, k] and packed [rows, n] activations in 8 bits (pack_q8.wgsl), gate, up [n, k] in one
// format with units, n a multiple of 32; activation is silu or gelu (tanh form). One workgroup for
// 32 rows of each weight and STEPS rows of x, as in matmul_rows8.wgsl.
struct Params { k: u32, n: u32, rows: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> packed: array<u32>;

// Threads; also the blocks of 32 columns that a workgroup has at a time.
const WG = 128u;
// Rows of both weights per workgroup.
const MOST = 64u;
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
    // Always 32. A driver that knew this would unroll the loops.
    let count = min(32u, params.n - r0); //~ never: sign
    let final_row = params.n - 1u; //~ unowned: sign
    let lane = gate_lane(lid);
    for (var first = 0u; first < blocks; first += WG) { //~ empty: comparison
        let block = min(first + lane, blocks - 1u);
        let held = held_load(t0, last, k, block, select(0u, lid & 1u, gate_near), select(0.0, 1.0, first + lane < blocks)); //~ apart: mask
        rows8_add_share(first, held_share(held, gate_near, lid), gate_near, lid);
        var ab = gate_ab(r0, final_row, k, block, lid);
        var cd = gate_cd(r0, final_row, k, block, lid);
        for (var r = 0u; r < count; r += 4u) {
            let next = r0 + min(r + 4u, count - 4u); //~ unowned: sign
            let now = ab;
            let a = held_dots(held, gate_of_a(now, k, block), gate_alike);
            let b = held_dots(held, gate_of_b(now, k, block), gate_alike);
            var sums = held_pair(a, b, rows_bit(gate_near), lid);
            ab = gate_ab(next, final_row, k, block, lid);
            let c = held_dots(held, gate_of_c(now, cd, k, block), gate_alike);
            let d = held_dots(held, gate_of_d(now, cd, k, block), gate_alike);
            sums = held_pair(sums, held_pair(c, d, rows_bit(gate_near), lid), 2u * rows_bit(gate_near), lid);
            cd = gate_cd(next, final_row, k, block, lid);
            rows8_add(first, r, held_own(sums, gate_near, lid), gate_near, lid);
        }
        var more_ab = up_ab(r0, final_row, k, block, lid);
        var more_cd = up_cd(r0, final_row, k, block, lid);
        for (var r = 0u; r < count; r += 4u) {
            let next = r0 + min(r + 4u, count - 4u); //~ unowned: sign
            let now = more_ab;
            let a = held_dots(held, up_of_a(now, k, block), up_alike);
            let b = held_dots(held, up_of_b(now, k, block), up_alike);
            var sums = held_pair(a, b, rows_bit(up_near), lid);
            more_ab = up_ab(next, final_row, k, block, lid);
            let c = held_dots(held, up_of_c(now, more_cd, k, block), up_alike);
            let d = held_dots(held, up_of_d(now, more_cd, k, block), up_alike);
            sums = held_pair(sums, held_pair(c, d, rows_bit(up_near), lid), 2u * rows_bit(up_near), lid);
            more_cd = up_cd(next, final_row, k, block, lid);
            rows8_add(first, 32u + r, held_own(sums, up_near, lid), up_near, lid);
        }
    }
    workgroupBarrier();
    let t = min(lid >> 3u, STEPS - 1u); //~ dropped: sign
    let r = 4u * (lid & 7u);
    let gated = activation(vec4<f32>(rows8_result(r, t), rows8_result(r + 1u, t), rows8_result(r + 2u, t), rows8_result(r + 3u, t)));
    let raised = vec4<f32>(rows8_result(r + 32u, t), rows8_result(r + 33u, t), rows8_result(r + 34u, t), rows8_result(r + 35u, t));
    let inside = lid < 8u * STEPS && t <= last;
    pack_q8_quad(t0 + t, params.n, (r0 + r) >> 2u, inside, gated * raised, 0.0, lid);
}
