// The result of attention_decode.wgsl as f32.
// Needs: nothing. Gives: packed, decode_store.
@group(0) @binding(11) var<storage, read_write> packed: array<vec4<f32>>;

fn decode_store(width: u32, quad: u32, inside: bool, v: vec4<f32>, lid: u32) {
    if (inside) {
        packed[quad] = v;
    }
}
