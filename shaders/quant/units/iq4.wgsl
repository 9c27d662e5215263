// IQ4_NL and IQ4_XS in units: a unit is the 32 elements of a scale.
// W_middle: the quant in the middle of the range of quants.
const W_middle = 0.0;

fn W_halves(u: u32) -> vec2<u32> {
    return vec2<u32>(2u * u, 2u * u + 1u);
}

fn W_iq4_each(q: vec4<u32>) -> vec4<u32> {
    return vec4<u32>(W_iq4(q.x), W_iq4(q.y), W_iq4(q.z), W_iq4(q.w));
}

fn W_unit(row: u32, k: u32, u: u32) -> Unit {
    let q = W[(row >> 2u) + u];
    return Unit(W_iq4_each(q), W_iq4_each(q >> vec4<u32>(4u)), vec2<f32>(W_iq4_scale(row, k, u)), vec2<f32>(0.0));
}
