// Q4_K in units: in the 16 bytes qs[16 u..], low nibbles are 16 elements, and high nibbles are the
// 16 elements that are 32 further on.
// W_middle: the quant in the middle of the range of quants.
const W_middle = 8.0;

fn W_halves(u: u32) -> vec2<u32> {
    let low = ((u >> 1u) << 2u) | (u & 1u);
    return vec2<u32>(low, low + 2u);
}

// A unit as it is stored.
struct W_Held { q: vec4<u32>, head: vec4<u32> }

fn W_held(row: u32, k: u32, u: u32) -> W_Held {
    let block = (row >> 2u) + (u >> 3u) * 9u;
    return W_Held(W[block + 1u + (u & 7u)], W[block]);
}

fn W_unit_of(held: W_Held, u: u32) -> Unit {
    let sm = W_scale_mins(held.head, (u >> 1u) & 3u);
    return Unit(held.q & vec4<u32>(0x0f0f0f0fu), (held.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), sm.xy, sm.zw);
}

fn W_unit(row: u32, k: u32, u: u32) -> Unit {
    return W_unit_of(W_held(row, k, u), u);
}

// Units 2 j and 2 j + 1: two sub-blocks of 32.
struct W_Wide { q: vec4<u32>, more_q: vec4<u32>, bits: vec4<u32>, more_bits: vec4<u32>, n: u32, scale_mins: vec4<f32> }

fn W_wide(row: u32, j: u32) -> W_Wide {
    let block = (row >> 2u) + (j >> 2u) * 9u;
    let n = j & 3u;
    let none = vec4<u32>(0u); //~ unused: off by one
    return W_Wide(W[block + 1u + 2u * n], W[block + 2u + 2u * n], none, none, n, W_scale_mins(W[block], n));
}

fn W_wide_low(q: vec4<u32>, bits: vec4<u32>, n: u32) -> vec4<u32> {
    return q & vec4<u32>(0x0f0f0f0fu);
}

fn W_wide_high(q: vec4<u32>, bits: vec4<u32>, n: u32) -> vec4<u32> {
    return (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
}
