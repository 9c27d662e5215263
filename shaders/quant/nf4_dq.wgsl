// NF4_DQ: { f32 d; u8 scales[4]; u8 qs[128] }, 256 elements in 136 bytes: four blocks of NF4 whose
// magnitudes are shares of the largest. Byte i has element 2i in its low nibble and element 2i + 1
// in its high nibble. Each 64 elements have a scale.
// Table: the codebook, 16 f32.
// Row (nb = k / 256): planes qs [128 nb bytes], scales [4 nb], d [4 nb], padded to 16 bytes.
// w = d * scale * codebook[q].
// Source: QLoRA (Dettmers et al. 2023, arXiv 2305.14314), double quantization.
const W_TABLE: u32 = 16u;

fn W_row(r: u32, k: u32) -> u32 {
    return W_TABLE + r * ((((k >> 8u) * 136u + 15u) >> 4u) << 2u);
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let scales = row + (k >> 8u) * 32u + (i >> 6u);
    let scale = (W_word(scales) >> (((i >> 4u) & 3u) << 3u)) & 255u;
    let absmax = bitcast<f32>(W_word(scales + (k >> 8u))) * f32(scale);
    let q = (vec4<u32>(W_word(row + (i >> 1u)) >> ((i & 1u) << 4u)) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return absmax * bitcast<vec4<f32>>(vec4<u32>(W_word(q.x), W_word(q.y), W_word(q.z), W_word(q.w)));
}
