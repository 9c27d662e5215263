// FP4 e2m1 (OCP Microscaling 1.0): 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. The nibble
// s_ee_m in the low half of each byte becomes the f16 s_000ee_m000000000, which is its value *
// 2^-14.
fn W_e2m1(codes: u32) -> vec4<f32> {
    let even = codes & 0x000f000fu;
    let odd = (codes >> 8u) & 0x000f000fu;
    let a = unpack2x16float(((even & 0x00070007u) << 9u) | ((even & 0x00080008u) << 12u));
    let b = unpack2x16float(((odd & 0x00070007u) << 9u) | ((odd & 0x00080008u) << 12u));
    return vec4<f32>(a.x, b.x, a.y, b.y);
}
