// Q6_K in units: the 16 bytes ql[16 u..] hold 16 elements in their low nibbles and the 16 that are 64 further on in the high ones.
fn W_halves(u: u32) -> vec2<u32> {
    let low = ((u >> 2u) << 3u) | (u & 3u);
    return vec2<u32>(low, low + 4u);
}

// Bytes of 0..63 less 32, each on its own.
fn W_signed(q: vec4<u32>) -> vec4<u32> {
    return ((q | vec4<u32>(0x80808080u)) - vec4<u32>(0x20202020u)) ^ vec4<u32>(0x80808080u);
}

fn W_unit(row: u32, k: u32, u: u32) -> Unit {
    let nb = k >> 8u;
    let b = u >> 3u;
    let j = u & 3u;
    let start = row >> 2u;
    let q = W[start + u];
    let upper = W[start + nb * 8u + b * 4u + ((u >> 1u) & 2u) + (j & 1u)] >> vec4<u32>(j & 2u);
    let low = (q & vec4<u32>(0x0f0f0f0fu)) | ((upper & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
    let high = ((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | (upper & vec4<u32>(0x30303030u));
    let at = row + nb * 48u + b * 4u + ((u >> 1u) & 2u);
    let shift = 24u - 8u * j;
    let scale = vec2<i32>(bitcast<i32>(W_word(at) << shift), bitcast<i32>(W_word(at + 1u) << shift)) >> vec2<u32>(24u);
    let d = W_half(row + nb * 52u, b);
    return Unit(W_signed(low), W_signed(high), d * vec2<f32>(scale), vec2<f32>(0.0));
}
