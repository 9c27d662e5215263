// The 16 values of IQ4_NL and IQ4_XS (ggml's kvalues_iq4nl), as signed bytes:
// -127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113
// `codes` holds a nibble in the low half of each byte.
fn W_iq4(codes: u32) -> vec4<f32> {
    let n = unpack4xU8(codes);
    let upper = (n & vec4<u32>(8u)) != vec4<u32>(0u);
    let first = select(vec4<u32>(0xbfad9881u), vec4<u32>(0x26190d01u), upper);
    let second = select(vec4<u32>(0xf6eaddcfu), vec4<u32>(0x71594535u), upper);
    let four = select(first, second, (n & vec4<u32>(4u)) != vec4<u32>(0u));
    let to_top = vec4<u32>(24u) - ((n & vec4<u32>(3u)) << vec4<u32>(3u));
    return vec4<f32>(bitcast<vec4<i32>>(four << to_top) >> vec4<u32>(24u));
}
