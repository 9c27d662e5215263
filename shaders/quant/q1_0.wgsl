// Q1_0: ggml's block_q1_0 { f16 d; u8 qs[16] }, 128 elements in 18 bytes. Bit j of qs belongs to
// element j.
// Row (nb = k / 128): planes qs [16 nb bytes], d [2 nb], padded to 16 bytes.
// w = d where the bit is set, -d where it is not.
// Source: ggml-common.h.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 7u) * 18u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let d = vec4<f32>(W_half(row + (k >> 7u) * 4u, i >> 5u));
    let bits = W_word(row + (i >> 3u)) >> ((i & 7u) << 2u);
    return select(-d, d, (vec4<u32>(bits) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>(0u));
}
