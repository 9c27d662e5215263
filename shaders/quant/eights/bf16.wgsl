// BF16: 16 bytes are eight elements.
fn W_eight_of(eight: vec4<u32>) -> mat2x4<f32> {
    let even = bitcast<vec4<f32>>(eight << vec4<u32>(16u));
    let odd = bitcast<vec4<f32>>(eight & vec4<u32>(0xffff0000u));
    return mat2x4<f32>(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
}
