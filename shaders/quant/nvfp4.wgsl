// NVFP4: ggml's block_nvfp4 { u8 d[4]; u8 qs[32] }, 64 elements in 36 bytes. d[s] is an unsigned
// e4m3 (0x7f reads as 0) for elements 16s..16s+15. Of their 8 bytes qs[8s..], low nibbles are
// elements 0..7 and high nibbles are elements 8..15.
// Row (nb = k / 64): planes qs [32 nb bytes], d [4 nb], padded to 16 bytes.
// w = e4m3(d) * e2m1(q). As an f16, e4m3 << 7 is its value * 2^-8, and W_e2m1 gives its value *
// 2^-14. The factor 2^(8 + 14) corrects both.
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 6u) * 36u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let b = i >> 4u;
    let scale = (W_word(row + (k >> 6u) * 8u + b) >> ((i & 12u) << 1u)) & 255u; //~ bits: mask
    let d = select(unpack2x16float((scale & 127u) << 7u).x * 4194304.0, 0.0, scale == 127u); //~ tested: mask, off by one
    let codes = W_word(row + b * 8u + ((i & 12u) >> 1u) + (i & 1u)) >> ((i & 2u) << 1u);
    return d * W_e2m1(codes);
}
