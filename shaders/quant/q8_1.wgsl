// Q8_1: ggml's block_q8_1 { f16 d, s; i8 qs[32] }, 32 elements in 36 bytes. Only ggml's dot
// products use s = d * sum(q).
// Row (nb = k / 32): planes qs [32 nb bytes], d [2 nb], padded to 16 bytes, without s.
// w = d * q.
// Source: ggml-common.h.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 5u) * 34u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let d = W_half(row + (k >> 5u) * 8u, i >> 3u);
    return d * vec4<f32>(unpack4xI8(W_word(row + i)));
}
