// Q5_K in units: like Q4_K, with the fifth bits of the elements from 64 n + 16 h on in bits 2 n
// (low half) and 2 n + 1 (high half) of qh[16 h..].
// W_middle: the quant in the middle of the range of quants.
const W_middle = 16.0;

fn W_halves(u: u32) -> vec2<u32> {
    let low = ((u >> 1u) << 2u) | (u & 1u);
    return vec2<u32>(low, low + 2u);
}

// A unit as it is stored.
struct W_Held { q: vec4<u32>, fifth: vec4<u32>, head: vec4<u32> }

fn W_held(row: u32, k: u32, u: u32) -> W_Held {
    let block = (row >> 2u) + (u >> 3u) * 11u;
    return W_Held(W[block + 3u + (u & 7u)], W[block + 1u + (u & 1u)], W[block]);
}

fn W_unit_of(held: W_Held, u: u32) -> Unit {
    let n = (u >> 1u) & 3u;
    let fifth = held.fifth >> vec4<u32>(2u * n);
    let sm = W_scale_mins(held.head, n);
    let low = (held.q & vec4<u32>(0x0f0f0f0fu)) | ((fifth & vec4<u32>(0x01010101u)) << vec4<u32>(4u));
    let high = ((held.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | ((fifth & vec4<u32>(0x02020202u)) << vec4<u32>(3u));
    return Unit(low, high, sm.xy, sm.zw);
}

fn W_unit(row: u32, k: u32, u: u32) -> Unit {
    return W_unit_of(W_held(row, k, u), u);
}

// Units 2 j and 2 j + 1: two sub-blocks of 32, with their fifth bits.
struct W_Wide { q: vec4<u32>, more_q: vec4<u32>, bits: vec4<u32>, more_bits: vec4<u32>, n: u32, scale_mins: vec4<f32> }

fn W_wide(row: u32, j: u32) -> W_Wide {
    let block = (row >> 2u) + (j >> 2u) * 11u;
    let n = j & 3u;
    return W_Wide(W[block + 3u + 2u * n], W[block + 4u + 2u * n], W[block + 1u], W[block + 2u], n, W_scale_mins(W[block], n));
}

fn W_wide_low(q: vec4<u32>, bits: vec4<u32>, n: u32) -> vec4<u32> {
    return (q & vec4<u32>(0x0f0f0f0fu)) | (((bits >> vec4<u32>(2u * n)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u));
}

fn W_wide_high(q: vec4<u32>, bits: vec4<u32>, n: u32) -> vec4<u32> {
    return ((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | (((bits >> vec4<u32>(2u * n)) & vec4<u32>(0x02020202u)) << vec4<u32>(3u));
}
