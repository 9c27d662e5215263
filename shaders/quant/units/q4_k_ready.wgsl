// A unit of Q4_K with its scales and minima in f16, for matmul_tile64.wgsl, which stages one half
// of the unit after the other.
struct W_Ready { q: vec4<u32>, scale: vec2<f16>, least: vec2<f16> }

// `live` is 1, or 0 for a unit past the end of the row, whose weights are then zero.
fn W_ready(held: W_Held, u: u32, live: f32) -> W_Ready {
    let sm = W_scale_mins(held.head, (u >> 1u) & 3u);
    return W_Ready(held.q, vec2<f16>(live * sm.xy), vec2<f16>(live * fma(vec2<f32>(-W_middle), sm.xy, sm.zw)));
}

// Four weights from the low or the high nibbles of a word. A nibble in the significand of an f16
// reads as 1024 (low) or 64 (high) more than its value.
fn W_four(q: u32, late: bool, scale: f16, least: f16) -> vec4<f16> {
    let nibbles = select(0x000f000fu, 0x00f000f0u, late);
    let above = select(0x64006400u, 0x54005400u, late);
    let middle = vec2<f16>(select(1024.0h + W_middle, 64.0h + W_middle, late));
    let even = vec2<f16>(unpack2x16float((q & nibbles) | above)) - middle;
    let odd = vec2<f16>(unpack2x16float(((q >> 8u) & nibbles) | above)) - middle;
    return four_of_pairs(even, odd, scale, least);
}

// Eight weights of the low or the high half of a unit: the first or the second eight.
fn W_eight(ready: W_Ready, u: u32, late: bool, second: bool) -> mat2x4<f16> {
    let two = select(ready.q.xy, ready.q.zw, second);
    let scale = select(ready.scale.x, ready.scale.y, late);
    let least = select(ready.least.x, ready.least.y, late);
    return mat2x4<f16>(W_four(two.x, late, scale, least), W_four(two.y, late, scale, least));
}
