// y[t] = the 32-element blocks of x[t] as 8-bit quants with a scale d = max |x| / 127 (rounded up to 16 bits of significand), as in ggml's block_q8_1
// x [rows, k] f32, k a multiple of 32; y [rows, k / 4 + k / 8] words: k / 4 of quants, then (d, d sum q[..16], d sum q[16..], 0) for
// each block. One thread per block.
struct Params { k: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> packed: array<vec4<u32>>;

const WG = 64u;

@compute @workgroup_size(WG)
fn pack_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let blocks = params.k >> 5u;
    let number = workgroup_number(id, extents) * WG + lid;
    let row = number / blocks;
    if (row >= params.rows) {
        return;
    }
    var v: array<vec4<f32>, 8>;
    for (var j = 0u; j < 8u; j++) {
        v[j] = x[number * 8u + j];
    }
    pack_q8_store(row, params.k, number % blocks, v);
}
