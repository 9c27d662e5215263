// IQ4_XS: ggml's block_iq4_xs { f16 d; u16 scales_h; u8 scales_l[4]; u8 qs[128] }, 256 elements in
// 136 bytes. In the 16 bytes qs[16s..], low nibbles are the elements from 32s on and high nibbles
// are the elements from 32s + 16 on. Scale s has 4 bits in scales_l and 2 bits in scales_h.
// Row (nb = k / 256): planes qs [128 nb bytes], scales_l [4 nb], (d, scales_h) [4 nb], padded to 16
// bytes.
// w = d * (scale - 32) * codebook[q].
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 8u) * 136u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let codes = W_word(row + ((i >> 3u) << 2u) + (i & 3u)) >> (i & 4u);
    return W_iq4_scale(row, k, i >> 3u) * vec4<f32>(unpack4xI8(W_iq4(codes)));
}

// d * (scale - 32) of 32 elements.
fn W_iq4_scale(row: u32, k: u32, u: u32) -> f32 {
    let nb = k >> 8u;
    let b = u >> 3u;
    let s = u & 7u;
    let head = W_word(row + nb * 33u + b);
    let scale = ((W_word(row + nb * 32u + b) >> (s << 2u)) & 15u) | (((head >> (16u + (s << 1u))) & 3u) << 4u);
    return unpack2x16float(head).x * (f32(scale) - 32.0);
}
