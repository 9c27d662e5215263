// Reads a KV state of f32: rows of `width` elements, padded to 16 bytes.
fn S_load4(row: u32, width: u32, i: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(S[row * ((width + 3u) / 4u) + i]);
}

// Elements 8 i .. 8 i + 7 of a row, as stored; S_open8 clamps them to the range of f16. The width
// is a multiple of 8.
alias S_Stored = mat2x4<f32>;

fn S_fetch8(row: u32, width: u32, i: u32) -> S_Stored {
    let at = row * (width / 4u) + 2u * i;
    return mat2x4<f32>(bitcast<vec4<f32>>(S[at]), bitcast<vec4<f32>>(S[at + 1u]));
}

fn S_open8(v: S_Stored) -> mat2x4<f32> {
    return mat2x4<f32>(clamp(v[0], vec4<f32>(-65504.0), vec4<f32>(65504.0)), clamp(v[1], vec4<f32>(-65504.0), vec4<f32>(65504.0)));
}

// The eight stored values, each as S_load4 reads it.
fn S_read8(v: S_Stored) -> mat2x4<f32> {
    return v;
}
