// F16: 16 bytes are eight elements.
fn W_eight_of(eight: vec4<u32>) -> mat2x4<f32> {
    return mat2x4<f32>(
        vec4<f32>(unpack2x16float(eight.x), unpack2x16float(eight.y)), vec4<f32>(unpack2x16float(eight.z), unpack2x16float(eight.w)));
}
