// Reads a KV state of f16: rows of `width` elements, padded to 16 bytes.
fn S_load4(row: u32, width: u32, i: u32) -> vec4<f32> {
    let eight = S[row * ((width + 7u) / 8u) + (i >> 1u)];
    let four = select(eight.xy, eight.zw, (i & 1u) == 1u);
    return vec4<f32>(unpack2x16float(four.x), unpack2x16float(four.y));
}

// Elements 8 i .. 8 i + 7 of a row, as stored; S_open8 decodes them. The width is a multiple of 8.
alias S_Stored = vec4<u32>;

fn S_fetch8(row: u32, width: u32, i: u32) -> S_Stored {
    return S[row * (width / 8u) + i];
}

fn S_open8(v: S_Stored) -> mat2x4<f32> {
    return mat2x4<f32>(vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)), vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)));
}

// The eight stored values, each as S_load4 reads it.
fn S_read8(v: S_Stored) -> mat2x4<f32> {
    return S_open8(v);
}
