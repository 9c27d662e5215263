// y[t] = the 32-element blocks of x[t] as 8-bit quants with a scale d = max |x| / 127 (rounded up
// to 16 bits of significand), as in ggml's block_q8_1
// x [rows, k] f32, k a multiple of 32; y [rows, k / 4 + k / 8] words: k / 4 words of quants, then
// (d, d sum q[..16], d sum q[16..], share) for each block. The share belongs to a norm whose factor
// readers apply (norm_pack_q8.wgsl); here it is 0. One thread per four elements.
// Needs: workgroup_number (grid.wgsl), pack_q8_quad (q8_store.wgsl). Gives: WG, packed.
struct Params { k: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> packed: array<u32>;

const WG = 128u;

@compute @workgroup_size(WG)
fn pack_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let quads = params.k >> 2u;
    let number = workgroup_number(id, extents) * WG + lid;
    let row = number / quads;
    let inside = row < params.rows;
    let v = x[min(number, params.rows * quads - 1u)];
    pack_q8_quad(row, params.k, number % quads, inside, v, 0.0, lid);
}
