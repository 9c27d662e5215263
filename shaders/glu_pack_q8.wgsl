// packed[t] = 8 bits of activation(gate[t, d]) * up[t, d]   (pack_q8.wgsl has the layout); activation is silu or gelu (tanh form)
// gate, up [rows, k] f32, k a multiple of 32. One thread per block of 32.
struct Params { k: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> up: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> packed: array<vec4<u32>>;

const WG = 32u;

@compute @workgroup_size(WG)
fn glu_pack_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let blocks = params.k >> 5u;
    let number = workgroup_number(id, extents) * WG + lid;
    let row = number / blocks;
    if (row >= params.rows) {
        return;
    }
    var v: array<vec4<f32>, 8>;
    for (var j = 0u; j < 8u; j++) {
        v[j] = activation(gate[number * 8u + j]) * up[number * 8u + j];
    }
    pack_q8_store(row, params.k, number % blocks, v);
}
