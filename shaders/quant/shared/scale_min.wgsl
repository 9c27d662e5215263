// Scale and minimum of sub-block s (0..7) in the head of a Q4_K or Q5_K block. head.x holds d and
// dmin (f16), head.yzw the 12 bytes of `scales`. Sub-blocks 0..3 have 6 bits in bytes s (scale) and
// s + 4 (minimum). Sub-blocks 4..7 have 4 bits in the nibbles of byte s + 4, and 2 upper bits in
// the upper bits of bytes s - 4 and s.
// Returns (d * scale, dmin * min).
fn W_scale_min(head: vec4<u32>, s: u32) -> vec2<f32> {
    let b = head.yzw >> vec3<u32>((s & 3u) << 3u);
    let early = b.xy & vec2<u32>(63u);
    let late = (vec2<u32>(b.z, b.z >> 4u) & vec2<u32>(15u)) | ((b.xy >> vec2<u32>(2u)) & vec2<u32>(48u));
    return unpack2x16float(head.x) * vec2<f32>(select(early, late, s >= 4u));
}
