// BF16: the upper 16 bits of an f32, two elements per word, the lower one first.
// Row: k elements, padded with zeros to a multiple of 8 (16 bytes).
// One 16-byte read serves two neighbouring quads, through the cache.
// Source: ggml.h, GGML_TYPE_BF16.
fn W_row(r: u32, k: u32) -> u32 {
    return r * (((k + 7u) >> 3u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let eight = W[(row >> 2u) + (i >> 1u)];
    let two = select(eight.xy, eight.zw, (i & 1u) == 1u);
    return bitcast<vec4<f32>>(vec4<u32>(two.x << 16u, two.x & 0xffff0000u, two.y << 16u, two.y & 0xffff0000u));
}
