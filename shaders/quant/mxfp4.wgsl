// MXFP4: ggml's block_mxfp4 { u8 e; u8 qs[16] }, 32 elements in 17 bytes. Low nibbles are elements
// 0..15, high nibbles are elements 16..31.
// Row (nb = k / 32): planes qs [16 nb bytes], e [nb], padded to 16 bytes.
// w = 2^(e - 127) * e2m1(q). The scale includes the factor 2^14 that W_e2m1 leaves out, so it
// saturates at 2^113. That is far above any weight.
// Source: ggml-common.h; OCP Microscaling Formats 1.0.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 5u) * 17u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let b = i >> 3u;
    let codes = W_word(row + b * 4u + (i & 3u)) >> (i & 4u);
    return bitcast<f32>(min(W_exponent(row, k, b) + 14u, 254u) << 23u) * W_e2m1(codes); //~ tested: off by one
}

// e of a block.
fn W_exponent(row: u32, k: u32, b: u32) -> u32 {
    return (W_word(row + (k >> 5u) * 4u + (b >> 2u)) >> ((b & 3u) << 3u)) & 255u; //~ tested: mask
}
