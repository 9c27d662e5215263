// packed[s] = activation(f g[s]) * (f u[s]) in 8 bits for every slot s (a row of the step and one
// of its choices), with g[s, r] = sum_k gate[e gate_stride + gate_first + r, k] x[s / per, k] for
// the slot's expert e, u alike from up, and f the factor of the norm that readers of x apply, or 1;
// activation is silu or gelu (tanh form)
// x [T, k] in 8 bits (pack_q8.wgsl), gate, up [E stride, k] in one format with units, slots [T per]
// u32 and tiles [tiles, 3] u32 of group_experts.wgsl, packed [T, per n] in 8 bits, n a multiple of
// 32. One workgroup for 32 rows of both weights of an expert and the slots of a tile, STEPS slots
// at a time, as in matmul_rows8_glu.wgsl.
// Needs: WG, rows8_result (rows8_sums.wgsl), workgroup_number (grid.wgsl), STEPS (slot steps), TEAM
// (the variant), gate_hold, gate_add, gate_ahead (the format of gate), up_add, up_ahead (the format
// of up), activation (slot activation), pack_q8_quad (q8_store.wgsl). Gives: MOST, x, PAIRS, slots,
// params.per, params.heads, packed.
struct Params {
    k: u32, n: u32, gate_stride: u32, gate_first: u32, up_stride: u32, up_first: u32, per: u32, heads: u32, tiles: u32, exchange: u32
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> slots: array<u32>;
@group(0) @binding(5) var<storage, read> tiles: array<u32>;
@group(0) @binding(6) var<storage, read_write> packed: array<u32>;

// Rows of both weights per workgroup.
const MOST = 64u;
// Rows of weights are always taken four at a time.
const PAIRS = false;
// The 32 rows of a workgroup are all there.
const EVERY_ROW = 0xffffffffu;

@compute @workgroup_size(WG)
fn matmul_rows8_experts_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let groups = params.n >> 5u;
    let tile = number / groups;
    if (tile >= params.tiles) {
        return;
    }
    let place = tiles[3u * tile + 1u];
    let held = tiles[3u * tile + 2u];
    if (held == 0u) { //~ exit: guard dropped
        return;
    }
    let top = number % groups * 32u;
    let gate_r = tiles[3u * tile] * params.gate_stride + params.gate_first + top;
    let up_r = tiles[3u * tile] * params.up_stride + params.up_first + top;
    let k = params.k;
    let blocks = k >> 5u;
    for (var t = 0u; t < held; t += STEPS) {
        let last = held - 1u - t; //~ race: sign
        for (var first = 0u; first < blocks; first += TEAM) {
            let rows = gate_hold(place + t, last, k, first, lid);
            _ = gate_add(rows, gate_ahead(gate_r, EVERY_ROW, k, first, lid), gate_r, EVERY_ROW, 32u, 0u, k, first, lid);
            _ = up_add(rows, up_ahead(up_r, EVERY_ROW, k, first, lid), up_r, EVERY_ROW, 32u, 32u, k, first, lid);
        }
        workgroupBarrier();
        // Eight threads pack the results of each slot.
        for (var begin = 0u; begin < STEPS; begin += WG / 8u) { //~ surplus: comparison
            let step = begin + (lid >> 3u);
            let here = min(step, STEPS - 1u);
            let r = 4u * (lid & 7u);
            let gated = activation(vec4<f32>(rows8_result(r, here), rows8_result(r + 1u, here), rows8_result(r + 2u, here), rows8_result(r + 3u, here)));
            let raised = vec4<f32>(rows8_result(r + 32u, here), rows8_result(r + 33u, here), rows8_result(r + 34u, here), rows8_result(r + 35u, here));
            let slot = slots[place + t + min(step, last)];
            let inside = step < STEPS && step <= last; //~ later: comparison
            let quad = (slot % params.per * params.n + top + r) >> 2u;
            pack_q8_quad(slot / params.per, params.per * params.n, quad, inside, gated * raised, 0.0, lid);
        }
        workgroupBarrier();
    }
}
