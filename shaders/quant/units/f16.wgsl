// F16 in tiles: 16 bytes are eight weights.
fn W_eight_of(eight: vec4<u32>) -> mat2x4<f16> {
    let first = vec4<f32>(unpack2x16float(eight.x), unpack2x16float(eight.y));
    return mat2x4<f16>(vec4<f16>(first), vec4<f16>(vec4<f32>(unpack2x16float(eight.z), unpack2x16float(eight.w))));
}
