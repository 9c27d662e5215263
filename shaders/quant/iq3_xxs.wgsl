// IQ3_XXS: ggml's block_iq3_xxs { f16 d; u8 qs[96] }, 256 elements in 98 bytes. qs is 64 grid
// indices, one per 4 elements, then a word per 32 elements of 4 * 7 sign bits and a 4-bit scale.
// Table: iq3xxs_grid, 256 entries of 4 bytes.
// Row (nb = k / 256): planes qs[0..64] [64 nb bytes], qs[64..96] [32 nb], d [2 nb], padded to 16
// bytes.
// w = d * (scale + 1/2) / 2 * grid[index], signed.
// Source: ggml-common.h; gguf-py quants.py.
const W_TABLE: u32 = 256u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 8u) * 98u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let index = (W_word(row + (i >> 2u)) >> ((i & 3u) << 3u)) & 255u;
    let rest = W_word(row + nb * 16u + (i >> 3u));
    let signs = W_signs8((rest >> (((i >> 1u) & 3u) * 7u)) & 127u) >> ((i & 1u) << 2u);
    let db = W_half(row + nb * 24u, i >> 6u) * (f32(rest >> 28u) + 0.5) * 0.5;
    return db * W_signed(W_word(index), signs);
}
