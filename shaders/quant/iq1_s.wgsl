// IQ1_S: ggml's block_iq1_s { f16 d; u8 qs[32]; u16 qh[8] }, 256 elements in 50 bytes. Each 8
// elements have a grid index: 8 bits in qs and 3 bits in qh. The upper 4 bits of qh are the scale
// and the sign of delta for 32 elements.
// Table: iq1s_grid, 2048 entries of one word. The value of element j, plus 1, is in the low nibble
// of byte j (j < 4) or in the high nibble of byte j - 4.
// Row (nb = k / 256): planes qs [32 nb bytes], qh [16 nb], d [2 nb], padded to 16 bytes.
// w = d * (2 * scale + 1) * (grid[index] +- 1/8).
// Source: ggml-common.h; gguf-py quants.py.
const W_TABLE: u32 = 2048u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 8u) * 50u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let low = (W_word(row + (i >> 3u)) >> ((i & 6u) << 2u)) & 255u;
    let qh = W_word(row + nb * 8u + (i >> 4u)) >> ((i & 8u) << 1u);
    let high = (qh >> (((i >> 1u) & 3u) * 3u)) & 7u;
    let dl = W_half(row + nb * 12u, i >> 6u) * f32(((qh >> 11u) & 14u) + 1u);
    let shift = select(-0.875, -1.125, (qh & 0x8000u) != 0u);
    let grid = (W_word(low | (high << 8u)) >> ((i & 1u) << 2u)) & 0x0f0f0f0fu;
    return dl * (vec4<f32>(unpack4xU8(grid)) + shift);
}
