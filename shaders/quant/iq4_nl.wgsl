// IQ4_NL: ggml's block_iq4_nl { f16 d; u8 qs[16] }, 32 elements in 18 bytes. Low nibbles are
// elements 0..15, high nibbles are elements 16..31.
// Row (nb = k / 32): planes qs [16 nb bytes], d [2 nb], padded to 16 bytes.
// w = d * codebook[q].
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 5u) * 18u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let b = i >> 3u;
    return W_iq4_scale(row, k, b) * vec4<f32>(unpack4xI8(W_iq4(W_word(row + b * 4u + (i & 3u)) >> (i & 4u))));
}

// d of a block.
fn W_iq4_scale(row: u32, k: u32, u: u32) -> f32 {
    return W_half(row + (k >> 5u) * 4u, u);
}
