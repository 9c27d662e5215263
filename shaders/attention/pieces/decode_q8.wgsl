// The result of attention_decode.wgsl in 8 bits (layout: pack_q8.wgsl).
// Needs: pack_q8_quad. Gives: packed, decode_store.
@group(0) @binding(11) var<storage, read_write> packed: array<u32>;

fn decode_store(width: u32, quad: u32, inside: bool, v: vec4<f32>, lid: u32) {
    pack_q8_quad(0u, width, quad, inside, v, 0.0, lid);
}
