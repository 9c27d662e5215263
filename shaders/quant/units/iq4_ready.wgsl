// A unit of IQ4_NL or IQ4_XS with its scale in f16 (ready.wgsl).
struct W_Ready { q: vec4<u32>, scale: f16 }

// `live` is 1, or 0 for a unit past the end of the row, whose weights are then zero.
fn W_ready(held: W_Held, u: u32, live: f32) -> W_Ready {
    return W_Ready(held.q, f16(128.0 * live * held.scale));
}

// Eight weights of the low or the high half of a unit: the first or the second eight.
fn W_eight(ready: W_Ready, u: u32, late: bool, second: bool) -> mat2x4<f16> {
    let codes = select(ready.q.xy, ready.q.zw, second) >> vec2<u32>(select(0u, 4u, late));
    return mat2x4<f16>(W_values(codes.x) * ready.scale, W_values(codes.y) * ready.scale);
}
