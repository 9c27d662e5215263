// IQ3_S: ggml's block_iq3_s { f16 d; u8 qs[64]; u8 qh[8]; u8 signs[32]; u8 scales[4] }, 256
// elements in 110 bytes. Each 4 elements have a grid index: 8 bits in qs and 1 bit in qh. Each 32
// elements have a 4-bit scale.
// Table: iq3s_grid, 512 entries of 4 bytes.
// Row (nb = k / 256): planes qs [64 nb bytes], qh [8 nb], signs [32 nb], scales [4 nb], d [2 nb],
// padded to 16 bytes.
// w = d * (2 * scale + 1) * grid[index], signed.
// Source: ggml-common.h; gguf-py quants.py.
const W_TABLE: u32 = 512u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 8u) * 110u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let b = i >> 6u;
    let low = (W_word(row + (i >> 2u)) >> ((i & 3u) << 3u)) & 255u;
    let high = (W_word(row + nb * 16u + (i >> 5u)) >> (i & 31u)) & 1u;
    let signs = W_word(row + nb * 18u + (i >> 3u)) >> ((i & 7u) << 2u);
    let scale = (W_word(row + nb * 26u + b) >> ((i >> 1u) & 28u)) & 15u;
    let db = W_half(row + nb * 27u, b) * f32(2u * scale + 1u);
    return db * W_signed(W_word(low | (high << 8u)), signs);
}
