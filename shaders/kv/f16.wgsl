// Reads a KV state of f16: rows of width elements, padded to 16 bytes.
fn S_load4(row: u32, width: u32, i: u32) -> vec4<f32> {
    let eight = S[row * ((width + 7u) / 8u) + (i >> 1u)];
    let four = select(eight.xy, eight.zw, (i & 1u) == 1u);
    return vec4<f32>(unpack2x16float(four.x), unpack2x16float(four.y));
}
