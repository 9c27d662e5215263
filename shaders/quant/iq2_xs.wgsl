// IQ2_XS: ggml's block_iq2_xs { f16 d; u16 qs[32]; u8 scales[8] }, 256 elements in 74 bytes. Each 8
// elements have a u16: a 9-bit grid index and 7 sign bits. Each 16 elements have a 4-bit scale.
// Table: iq2xs_grid, 512 entries of 8 bytes.
// Row (nb = k / 256): planes qs [64 nb bytes], scales [8 nb], d [2 nb], padded to 16 bytes.
// w = d * (scale + 1/2) / 4 * grid[index], signed.
// Source: ggml-common.h; gguf-py quants.py.
const W_TABLE: u32 = 1024u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 8u) * 74u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let code = (W_word(row + (i >> 2u)) >> ((i & 2u) << 3u)) & 0xffffu;
    let scale = (W_word(row + nb * 16u + (i >> 5u)) >> (i & 28u)) & 15u;
    let signs = W_signs8(code >> 9u) >> ((i & 1u) << 2u);
    let db = W_half(row + nb * 18u, i >> 6u) * (f32(scale) + 0.5) * 0.25;
    return db * W_signed(W_word(((code & 511u) << 1u) | (i & 1u)), signs);
}
