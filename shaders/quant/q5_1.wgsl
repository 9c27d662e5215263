// Q5_1: ggml's block_q5_1 { f16 d, m; u8 qh[4]; u8 qs[16] }, 32 elements in 24 bytes. Low nibbles
// are elements 0..15, high nibbles are elements 16..31. Bit j of qh is the fifth bit of element j.
// Row (nb = k / 32): planes qs [16 nb bytes], qh [4 nb], (d, m) [4 nb], padded to 16 bytes.
// w = d * q + m.
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 5u) * 24u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 5u;
    let b = i >> 3u;
    let dm = unpack2x16float(W_word(row + nb * 5u + b));
    let low = (W_word(row + b * 4u + (i & 3u)) >> (i & 4u)) & 0x0f0f0f0fu;
    let fifth = (W_word(row + nb * 4u + b) >> ((i & 7u) << 2u)) & 15u;
    let q = low | ((fifth * 0x02040810u) & 0x10101010u);
    return dm.x * vec4<f32>(unpack4xU8(q)) + dm.y;
}
