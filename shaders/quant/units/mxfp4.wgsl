// MXFP4 in units: a unit is a block, and its quants are twice the values of e2m1.
// W_middle: the quant in the middle of the range of quants.
const W_middle = 0.0;

fn W_halves(u: u32) -> vec2<u32> {
    return vec2<u32>(2u * u, 2u * u + 1u);
}

// The quants of four words of codes s_ee_m, the codes in the low halves of the bytes. Without its
// sign, a code above 4 is 1, 2 or 5 less than twice its value. Bytes are 128 more than their quant
// while values are subtracted, so no byte borrows from the next.
fn W_e2m1_quants(q: vec4<u32>) -> vec4<u32> {
    let ones = vec4<u32>(0x01010101u);
    let above = (q >> vec4<u32>(2u)) & ones;
    let m = q & above;
    let e = (q >> vec4<u32>(1u)) & above;
    let twice = (q & vec4<u32>(0x07070707u)) + m + 2u * e + 2u * (m & e);
    let negative = ((q >> vec4<u32>(3u)) & ones) * 255u;
    let up = vec4<u32>(0x80808080u);
    return (up + twice - 2u * (twice & negative)) ^ up;
}

fn W_unit(row: u32, k: u32, u: u32) -> Unit {
    let q = W[(row >> 2u) + u];
    // 2^(e - 128), half the scale of the values. Scales below 2^-126 are zero.
    let scale = bitcast<f32>((max(W_exponent(row, k, u), 1u) - 1u) << 23u); //~ small: off by one
    return Unit(W_e2m1_quants(q), W_e2m1_quants(q >> vec4<u32>(4u)), vec2<f32>(scale), vec2<f32>(0.0));
}
