// packed[t] = activation(gate[t, d]) * up[t, start + d] in 8 bits (layout: pack_q8.wgsl);
// activation is silu or gelu (tanh form)
// gate [rows, k], up [rows, up_k] f32, k a multiple of 32, up_k and start multiples of 4. One
// thread per four elements.
// Needs: workgroup_number (grid.wgsl), pack_q8_quad (q8_store.wgsl), activation (slot activation).
// Gives: WG, packed.
struct Params { k: u32, rows: u32, up_k: u32, start: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> up: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> packed: array<u32>;

const WG = 128u;

@compute @workgroup_size(WG)
fn glu_pack_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let quads = params.k >> 2u;
    let number = workgroup_number(id, extents) * WG + lid;
    let row = number / quads;
    let inside = row < params.rows;
    let at = min(number, params.rows * quads - 1u);
    let beside = min(row, params.rows - 1u) * (params.up_k >> 2u) + (params.start >> 2u) + at % quads;
    pack_q8_quad(row, params.k, number % quads, inside, activation(gate[at]) * up[beside], 0.0, lid);
}
