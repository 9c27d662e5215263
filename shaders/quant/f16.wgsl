// F16: IEEE half precision, two elements per word, the lower one first.
// Row: k elements, padded with zeros to a multiple of 8 (16 bytes).
// One 16-byte read serves two neighbouring quads, through the cache.
// Source: ggml.h, GGML_TYPE_F16.
fn W_row(r: u32, k: u32) -> u32 {
    return r * (((k + 7u) >> 3u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let eight = W[(row >> 2u) + (i >> 1u)];
    let two = select(eight.xy, eight.zw, (i & 1u) == 1u);
    return vec4<f32>(unpack2x16float(two.x), unpack2x16float(two.y));
}
