// Q8_K: ggml's block_q8_K { f32 d; i8 qs[256]; i16 bsums[16] }, 256 elements in 292 bytes. Only
// ggml's dot products use bsums.
// Row (nb = k / 256): planes qs [256 nb bytes], d [4 nb], padded to 16 bytes, without bsums.
// w = d * q.
// Source: ggml-common.h.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 8u) * 260u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let d = bitcast<f32>(W_word(row + (k >> 8u) * 64u + (i >> 6u)));
    return d * vec4<f32>(unpack4xI8(W_word(row + i)));
}
