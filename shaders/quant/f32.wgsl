// F32: one element per word, as in the file.
// Row: k elements, padded with zeros to a multiple of 4 (16 bytes).
// Source: ggml.h, GGML_TYPE_F32.
fn W_row(r: u32, k: u32) -> u32 {
    return r * (((k + 3u) >> 2u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(W[(row >> 2u) + i]);
}
