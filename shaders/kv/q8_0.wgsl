// Reads a KV state of q8_0. A row holds the 8-bit quants of its blocks of 32, then one f32 scale
// per block, padded to 16 bytes. Value = quant * scale.
fn S_load4(row: u32, width: u32, i: u32) -> vec4<f32> {
    let blocks = (width + 31u) / 32u;
    let start = row * ((9u * blocks + 3u) / 4u) * 4u;
    let quants = start + i;
    let scale = start + 8u * blocks + (i >> 3u);
    return vec4<f32>(unpack4xI8(S[quants >> 2u][quants & 3u])) * bitcast<f32>(S[scale >> 2u][scale & 3u]);
}

// Elements 8 i .. 8 i + 7 of a row, as stored (quants and scale); S_open8 decodes them and keeps
// them in the range of f16. The width is a multiple of 8.
alias S_Stored = vec3<u32>;

fn S_fetch8(row: u32, width: u32, i: u32) -> S_Stored {
    let blocks = (width + 31u) / 32u;
    let start = row * ((9u * blocks + 3u) / 4u) * 4u;
    let four = S[(start >> 2u) + (i >> 1u)];
    let scale = start + 8u * blocks + (i >> 2u);
    return vec3<u32>(select(four.xy, four.zw, (i & 1u) == 1u), S[scale >> 2u][scale & 3u]);
}

fn S_open8(v: S_Stored) -> mat2x4<f32> {
    let scale = min(bitcast<f32>(v.z), 65504.0 / 127.0);
    return mat2x4<f32>(vec4<f32>(unpack4xI8(v.x)), vec4<f32>(unpack4xI8(v.y))) * scale;
}

// The eight stored values, each as S_load4 reads it.
fn S_read8(v: S_Stored) -> mat2x4<f32> {
    return mat2x4<f32>(vec4<f32>(unpack4xI8(v.x)), vec4<f32>(unpack4xI8(v.y))) * bitcast<f32>(v.z);
}
