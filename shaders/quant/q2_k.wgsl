// Q2_K: ggml's block_q2_K { u8 scales[16]; u8 qs[64]; f16 d, dmin }, 256 elements in 84 bytes. Bits
// 2j, 2j+1 of the 32 bytes qs[32n..] are the elements from 128n + 32j on. scales[s] has the scale
// (low nibble) and the minimum (high nibble) of elements 16s..16s+15.
// Row (nb = k / 256): planes qs [64 nb bytes], scales [16 nb], (d, dmin) [4 nb], padded to 16
// bytes.
// w = d * scale * q - dmin * min.
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 8u) * 84u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let b = i >> 6u;
    let dm = unpack2x16float(W_word(row + nb * 20u + b));
    let sm = W_word(row + nb * 16u + (i >> 4u)) >> ((i & 12u) << 1u);
    let q = (W_word(row + b * 16u + ((i >> 2u) & 8u) + (i & 7u)) >> ((i >> 2u) & 6u)) & 0x03030303u;
    return (dm.x * f32(sm & 15u)) * vec4<f32>(unpack4xU8(q)) - dm.y * f32((sm >> 4u) & 15u);
}
