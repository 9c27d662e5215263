// A unit of Q6_K with its scales in f16, for matmul_tile64.wgsl, which stages one half of the unit
// after the other.
struct W_Ready { q: vec4<u32>, upper: vec4<u32>, scale: vec2<f16> }

// `live` is 1, or 0 for a unit past the end of the row, whose weights are then zero.
fn W_ready(held: W_Held, u: u32, live: f32) -> W_Ready {
    let j = u & 3u;
    let scale = bitcast<vec2<i32>>(held.scales << vec2<u32>(24u - 8u * j)) >> vec2<u32>(24u);
    return W_Ready(held.q, held.upper >> vec4<u32>(j & 2u), vec2<f16>(live * held.d * vec2<f32>(scale)));
}

// Four weights from the low or the high nibbles of a word and their two upper bits. A byte in the
// significand of an f16 reads as 1024 + 32 more than the signed quant.
fn W_four(q: u32, upper: u32, late: bool, scale: f16) -> vec4<f16> {
    let low = (q & 0x0f0f0f0fu) | ((upper << 4u) & 0x30303030u);
    let high = ((q >> 4u) & 0x0f0f0f0fu) | (upper & 0x30303030u);
    let bytes = select(low, high, late);
    let even = vec2<f16>(unpack2x16float((bytes & 0x00ff00ffu) | 0x64006400u)) - vec2<f16>(1056.0h);
    let odd = vec2<f16>(unpack2x16float(((bytes >> 8u) & 0x00ff00ffu) | 0x64006400u)) - vec2<f16>(1056.0h);
    return four_of_pairs(even, odd, scale, 0.0h);
}

// Eight weights of the low or the high half of a unit: the first or the second eight.
fn W_eight(ready: W_Ready, u: u32, late: bool, second: bool) -> mat2x4<f16> {
    let q = select(ready.q.xy, ready.q.zw, second);
    let upper = select(ready.upper.xy, ready.upper.zw, second);
    let scale = select(ready.scale.x, ready.scale.y, late);
    return mat2x4<f16>(W_four(q.x, upper.x, late, scale), W_four(q.y, upper.y, late, scale));
}
