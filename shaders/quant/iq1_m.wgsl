// IQ1_M: ggml's block_iq1_m { u8 qs[32]; u8 qh[16]; u8 scales[8] }, 256 elements in 56 bytes. Each
// 8 elements have a grid index: 8 bits in qs and 3 bits in a nibble of qh. The fourth bit of the
// nibble is the sign of delta. `scales` is four u16. Each has four 3-bit scales (one per 16
// elements) and a nibble of the f16 d, lowest nibble first.
// Table: iq1s_grid, 2048 entries of one word. The value of element j, plus 1, is in the low nibble
// of byte j (j < 4) or in the high nibble of byte j - 4.
// Row (nb = k / 256): planes qs [32 nb bytes], qh [16 nb], scales [8 nb], padded to 16 bytes.
// w = d * (2 * scale + 1) * (grid[index] +- 1/8).
// Source: ggml-common.h; gguf-py quants.py.
const W_TABLE: u32 = 2048u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 8u) * 56u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let low = (W_word(row + (i >> 3u)) >> ((i & 6u) << 2u)) & 255u;
    let qh = W_word(row + nb * 8u + (i >> 4u)) >> ((i & 14u) << 1u);
    let scales = row + nb * 12u + ((i >> 6u) << 1u);
    let s01 = W_word(scales);
    let s23 = W_word(scales + 1u);
    let d = ((s01 >> 12u) & 0x000fu) | ((s01 >> 24u) & 0x00f0u) | ((s23 >> 4u) & 0x0f00u) | ((s23 >> 16u) & 0xf000u);
    let scale = (select(s01, s23, (i & 32u) != 0u) >> ((i & 16u) + ((i >> 2u) & 3u) * 3u)) & 7u;
    let dl = unpack2x16float(d).x * f32(2u * scale + 1u);
    let shift = select(-0.875, -1.125, (qh & 8u) != 0u);
    let grid = (W_word(low | ((qh & 7u) << 8u)) >> ((i & 1u) << 2u)) & 0x0f0f0f0fu;
    return dl * (vec4<f32>(unpack4xU8(grid)) + shift);
}
