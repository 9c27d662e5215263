// IQ2_XXS: ggml's block_iq2_xxs { f16 d; u16 qs[32] }, 256 elements in 66 bytes. Each 32 elements
// have 8 bytes: 4 grid indices, then a word of 4 * 7 sign bits and a 4-bit scale.
// Table: iq2xxs_grid, 256 entries of 8 bytes.
// Row (nb = k / 256): planes qs [64 nb bytes], d [2 nb], padded to 16 bytes.
// w = d * (scale + 1/2) / 4 * grid[index], signed.
// Source: ggml-common.h; gguf-py quants.py.
const W_TABLE: u32 = 512u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 8u) * 66u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let group = row + ((i >> 3u) << 1u);
    let l = (i >> 1u) & 3u;
    let index = (W_word(group) >> (l << 3u)) & 255u;
    let rest = W_word(group + 1u);
    let signs = W_signs8((rest >> (l * 7u)) & 127u) >> ((i & 1u) << 2u);
    let db = W_half(row + (k >> 8u) * 16u, i >> 6u) * (f32(rest >> 28u) + 0.5) * 0.25;
    return db * W_signed(W_word((index << 1u) | (i & 1u)), signs);
}
