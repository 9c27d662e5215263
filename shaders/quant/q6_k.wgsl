// Q6_K: ggml's block_q6_K { u8 ql[128]; u8 qh[64]; i8 scales[16]; f16 d }, 256 elements in 210
// bytes. In the 64 bytes ql[64n..], low nibbles are the elements from 128n on and high nibbles are
// the elements from 128n + 64 on. Bits 2j, 2j+1 of the 32 bytes qh[32n..] belong to the elements
// from 128n + 32j on.
// Row (nb = k / 256): planes ql [128 nb bytes], qh [64 nb], scales [16 nb], d [2 nb], padded to 16
// bytes.
// w = d * scale * (q - 32), one scale per 16 elements.
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 8u) * 210u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let b = i >> 6u;
    let low = (W_word(row + b * 32u + ((i >> 1u) & 16u) + (i & 15u)) >> ((i >> 2u) & 4u)) & 0x0f0f0f0fu;
    let high = (W_word(row + nb * 32u + b * 16u + ((i >> 2u) & 8u) + (i & 7u)) >> ((i >> 2u) & 6u)) & 0x03030303u;
    let scale = bitcast<i32>(W_word(row + nb * 48u + (i >> 4u)) << (24u - ((i & 12u) << 1u))) >> 24u;
    let dl = W_half(row + nb * 52u, b) * f32(scale);
    return dl * (vec4<f32>(unpack4xU8(low | (high << 4u))) - 32.0);
}
