// Reads a KV state of f32: rows of width elements, padded to 16 bytes.
fn S_load4(row: u32, width: u32, i: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(S[row * ((width + 3u) / 4u) + i]);
}
