// Reads a KV state of q8_0: a row holds the 8-bit quants of its blocks of 32, then one f32 scale per block, padded
// to 16 bytes. Value = quant * scale.
fn S_load4(row: u32, width: u32, i: u32) -> vec4<f32> {
    let blocks = (width + 31u) / 32u;
    let start = row * ((9u * blocks + 3u) / 4u) * 4u;
    let quants = start + i;
    let scale = start + 8u * blocks + (i >> 3u);
    return vec4<f32>(unpack4xI8(S[quants >> 2u][quants & 3u])) * bitcast<f32>(S[scale >> 2u][scale & 3u]);
}
