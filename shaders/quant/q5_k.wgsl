// Q5_K: ggml's block_q5_K { f16 d, dmin; u8 scales[12]; u8 qh[32]; u8 qs[128] }, 256 elements in
// 176 bytes. In the 32 bytes qs[32n..], low nibbles are the elements from 64n on and high nibbles
// are the elements from 64n + 32 on. Bit s of qh is the fifth bit of the elements from 32s on. Each
// 32 elements have a 6-bit scale and a 6-bit minimum.
// Row: the blocks as in the file (176 = 11 * 16 bytes).
// w = d * scale * q - dmin * min.
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((k >> 8u) * 44u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let block = row + (i >> 6u) * 44u;
    let s = (i >> 3u) & 7u;
    let sm = W_scale_min(W[block >> 2u], s);
    let low = (W_word(block + 12u + ((i >> 1u) & 24u) + (i & 7u)) >> ((i >> 1u) & 4u)) & 0x0f0f0f0fu;
    let fifth = (W_word(block + 4u + (i & 7u)) >> s) & 0x01010101u;
    return sm.x * vec4<f32>(unpack4xU8(low | (fifth << 4u))) - sm.y;
}
