// Q4_K: ggml's block_q4_K { f16 d, dmin; u8 scales[12]; u8 qs[128] }, 256 elements in 144 bytes. In
// the 32 bytes qs[32n..], low nibbles are the elements from 64n on and high nibbles are the
// elements from 64n + 32 on. Each 32 elements have a 6-bit scale and a 6-bit minimum.
// Row: the blocks as in the file (144 = 9 * 16 bytes).
// w = d * scale * q - dmin * min.
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((k >> 8u) * 36u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let block = row + (i >> 6u) * 36u;
    let sm = W_scale_min(W[block >> 2u], (i >> 3u) & 7u);
    let q = (W_word(block + 4u + ((i >> 1u) & 24u) + (i & 7u)) >> ((i >> 1u) & 4u)) & 0x0f0f0f0fu;
    return sm.x * vec4<f32>(unpack4xU8(q)) - sm.y;
}
