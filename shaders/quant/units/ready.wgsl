// A unit as it is stored, with its scales and minima in f16, for matmul_tile64.wgsl, which stages
// one half of the unit after the other.
struct W_Ready { held: W_Held, scale: vec2<f16>, least: vec2<f16> }

// `live` is 1, or 0 for a unit past the end of the row, whose weights are then zero.
fn W_ready(held: W_Held, u: u32, live: f32) -> W_Ready {
    let unit = W_unit_of(held, u);
    return W_Ready(held, vec2<f16>(live * unit.scale), vec2<f16>(live * fma(vec2<f32>(-W_middle), unit.scale, unit.least)));
}

// Four weights from the bytes of a word, which are signed quants plus 128. A byte in the
// significand of an f16 reads as 1152 more than the signed quant; the subtraction is exact.
fn W_four(bytes: u32, scale: f16, least: f16) -> vec4<f16> {
    let even = vec2<f16>(unpack2x16float((bytes & 0x00ff00ffu) | 0x64006400u)) - vec2<f16>(1152.0h + W_middle);
    let odd = vec2<f16>(unpack2x16float(((bytes >> 8u) & 0x00ff00ffu) | 0x64006400u)) - vec2<f16>(1152.0h + W_middle);
    return four_of_pairs(even, odd, scale, least);
}

// Eight weights of the low or the high half of a unit: the first or the second eight.
fn W_eight(ready: W_Ready, u: u32, late: bool, second: bool) -> mat2x4<f16> {
    let unit = W_unit_of(ready.held, u);
    let bytes = select(unit.low, unit.high, late) ^ vec4<u32>(0x80808080u);
    let two = select(bytes.xy, bytes.zw, second);
    let scale = select(ready.scale.x, ready.scale.y, late);
    let least = select(ready.least.x, ready.least.y, late);
    return mat2x4<f16>(W_four(two.x, scale, least), W_four(two.y, scale, least));
}
