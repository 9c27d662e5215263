// TQ2_0: ggml's block_tq2_0 { u8 qs[64]; f16 d }, 256 elements in 66 bytes. Bits 2j, 2j+1 of the 32
// bytes qs[32n..] are the elements from 128n + 32j on.
// Row (nb = k / 256): planes qs [64 nb bytes], d [2 nb], padded to 16 bytes.
// w = d * (q - 1).
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 8u) * 66u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let b = i >> 6u;
    let d = W_half(row + (k >> 8u) * 16u, b);
    let q = (W_word(row + b * 16u + ((i >> 2u) & 8u) + (i & 7u)) >> ((i >> 2u) & 6u)) & 0x03030303u;
    return d * (vec4<f32>(unpack4xU8(q)) - 1.0);
}
