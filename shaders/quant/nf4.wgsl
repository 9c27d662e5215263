// NF4: { f32 absmax; u8 qs[32] }, 64 elements in 36 bytes. Byte i has element 2i in its low nibble
// and element 2i + 1 in its high nibble.
// Table: the codebook, 16 f32.
// Row (nb = k / 64): planes qs [32 nb bytes], absmax [4 nb], padded to 16 bytes.
// w = absmax * codebook[q].
// Source: QLoRA (Dettmers et al. 2023, arXiv 2305.14314); bitsandbytes.
const W_TABLE: u32 = 16u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 6u) * 36u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let absmax = bitcast<f32>(W_word(row + (k >> 6u) * 8u + (i >> 4u)));
    let q = (vec4<u32>(W_word(row + (i >> 1u)) >> ((i & 1u) << 4u)) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return absmax * bitcast<vec4<f32>>(vec4<u32>(W_word(q.x), W_word(q.y), W_word(q.z), W_word(q.w)));
}
