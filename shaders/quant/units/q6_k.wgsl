// Q6_K in units: in the 16 bytes ql[16 u..], low nibbles are 16 elements, and high nibbles are the
// 16 elements that are 64 further on.
// W_middle: the quant in the middle of the range of quants.
const W_middle = 0.0;

fn W_halves(u: u32) -> vec2<u32> {
    let low = ((u >> 2u) << 3u) | (u & 3u);
    return vec2<u32>(low, low + 4u);
}

// Subtracts 32 from each byte, which is 0..63.
fn W_signed(q: vec4<u32>) -> vec4<u32> {
    return ((q | vec4<u32>(0x80808080u)) - vec4<u32>(0x20202020u)) ^ vec4<u32>(0x80808080u);
}

// A unit as it is stored, with the words that hold its scales.
struct W_Held { q: vec4<u32>, upper: vec4<u32>, scales: vec2<u32>, d: f32 }

fn W_held(row: u32, k: u32, u: u32) -> W_Held {
    let nb = k >> 8u;
    let b = u >> 3u;
    let half = (u >> 1u) & 2u;
    let start = row >> 2u;
    let at = row + nb * 48u + b * 4u + half;
    return W_Held(W[start + u], W[start + nb * 8u + b * 4u + half + (u & 1u)], vec2<u32>(W_word(at), W_word(at + 1u)), W_half(row + nb * 52u, b));
}

fn W_unit_of(held: W_Held, u: u32) -> Unit {
    let j = u & 3u;
    let upper = held.upper >> vec4<u32>(j & 2u);
    let low = (held.q & vec4<u32>(0x0f0f0f0fu)) | ((upper & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
    let high = ((held.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | (upper & vec4<u32>(0x30303030u));
    let scale = bitcast<vec2<i32>>(held.scales << vec2<u32>(24u - 8u * j)) >> vec2<u32>(24u);
    return Unit(W_signed(low), W_signed(high), held.d * vec2<f32>(scale), vec2<f32>(0.0));
}

fn W_unit(row: u32, k: u32, u: u32) -> Unit {
    return W_unit_of(W_held(row, k, u), u);
}
