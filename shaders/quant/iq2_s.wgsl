// IQ2_S: ggml's block_iq2_s { f16 d; u8 qs[64]; u8 qh[8]; u8 scales[8] }, 256 elements in 82 bytes.
// qs is 32 low bytes of grid indices, then 32 bytes of signs; each 8 elements have one byte of
// either. qh has 2 upper bits of each index, `scales` has 4 bits per 16 elements.
// Table: iq2s_grid, 1024 entries of 8 bytes.
// Row (nb = k / 256): planes qs [64 nb bytes], qh [8 nb], scales [8 nb], d [2 nb], padded to 16
// bytes.
// w = d * (scale + 1/2) / 4 * grid[index], signed.
// Source: ggml-common.h; gguf-py quants.py.
const W_TABLE: u32 = 2048u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 8u) * 82u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let b = i >> 6u;
    let qs = row + b * 16u + ((i >> 3u) & 7u);
    let low = (W_word(qs) >> ((i & 6u) << 2u)) & 255u;
    let high = (W_word(row + nb * 16u + (i >> 5u)) >> ((i & 24u) + (i & 6u))) & 3u;
    let scale = (W_word(row + nb * 18u + (i >> 5u)) >> (i & 28u)) & 15u;
    let signs = W_word(qs + 8u) >> ((i & 7u) << 2u);
    let db = W_half(row + nb * 20u, b) * (f32(scale) + 0.5) * 0.25;
    return db * W_signed(W_word(((low | (high << 8u)) << 1u) | (i & 1u)), signs);
}
