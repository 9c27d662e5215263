// The result of attention_merge.wgsl in 8 bits (pack_q8.wgsl). Heads are whole blocks of 32.
// Needs: pack_q8_quad, params.heads, params.head_dim. Gives: packed, merged_store.
@group(0) @binding(4) var<storage, read_write> packed: array<u32>;

fn merged_store(t: u32, number: u32, quad: u32, inside: bool, v: vec4<f32>, lid: u32) {
    pack_q8_quad(t, params.heads * params.head_dim, (number % params.heads) * (params.head_dim >> 2u) + quad, inside, v, 0.0, lid);
}
