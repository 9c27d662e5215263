// Q3_K: ggml's block_q3_K { u8 hmask[32]; u8 qs[64]; u8 scales[12]; f16 d }, 256 elements in 110
// bytes. Bits 2j, 2j+1 of the 32 bytes qs[32n..] and bit 4n + j of hmask are the elements from 128n
// + 32j on. Each of the 16 scales has 4 bits in a nibble of scales[s % 8] and 2 bits in scales[8 +
// s % 4].
// Row (nb = k / 256): planes qs [64 nb bytes], hmask [32 nb], scales [12 nb], d [2 nb], padded to
// 16 bytes.
// w = d * (scale - 32) * (q - 4).
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 8u) * 110u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let b = i >> 6u;
    let s = (i >> 2u) & 15u;
    let scales = row + nb * 24u + b * 3u;
    let scale_low = (W_word(scales + ((s >> 2u) & 1u)) >> (((s & 3u) << 3u) + ((s & 8u) >> 1u))) & 15u;
    let scale_high = (W_word(scales + 2u) >> (((s & 3u) << 3u) + ((s >> 2u) << 1u))) & 3u;
    let dl = W_half(row + nb * 27u, b) * (f32(scale_low | (scale_high << 4u)) - 32.0);
    let low = (W_word(row + b * 16u + ((i >> 2u) & 8u) + (i & 7u)) >> ((i >> 2u) & 6u)) & 0x03030303u;
    let high = (W_word(row + nb * 16u + b * 8u + (i & 7u)) >> ((i >> 3u) & 7u)) & 0x01010101u;
    return dl * (vec4<f32>(unpack4xU8(low | (high << 2u))) - 4.0);
}
