// The scales and minima of sub-blocks 2 n and 2 n + 1 in the head of a Q4_K or Q5_K block, packed
// as in scale_min.wgsl: (d scale, d scale, dmin min, dmin min).
fn W_scale_mins(head: vec4<u32>, n: u32) -> vec4<f32> {
    let b = head.yzw >> vec3<u32>((n & 1u) << 4u);
    let early = b.xy & vec2<u32>(0x3f3fu);
    let late = (vec2<u32>(b.z, b.z >> 4u) & vec2<u32>(0x0f0fu)) | ((b.xy >> vec2<u32>(2u)) & vec2<u32>(0x3030u));
    let sm = select(early, late, n >= 2u);
    let d = unpack2x16float(head.x);
    return vec4<f32>(d.xx, d.yy) * vec4<f32>(vec4<u32>(sm.x, sm.x >> 8u, sm.y, sm.y >> 8u) & vec4<u32>(255u));
}
