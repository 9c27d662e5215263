// The power of two 2^e for which 2^13 <= largest / 2^e < 2^14, and 1 for magnitudes below 2^-100,
// which count as zeros. Rows in f16 are divided by it. Then they leave room for sums and lose no
// precision to subnormals. kept_scale is the scale that readers get: 0 for zeros, so that sums over
// rows know the rows that count.
// Needs: nothing. Gives: NEXT_TO_NOTHING, half_scale, kept_scale, halves_of_quad.

// About 2^-100.
const NEXT_TO_NOTHING = 7.9e-31;

fn half_scale(largest: f32) -> f32 {
    let exponent = (bitcast<u32>(largest) >> 23u) - 13u; //~ free: off by one
    return select(bitcast<f32>(exponent << 23u), 1.0, largest < NEXT_TO_NOTHING); //~ never: comparison
}

fn kept_scale(largest: f32) -> f32 {
    return select(half_scale(largest), 0.0, largest < NEXT_TO_NOTHING); //~ never: comparison
}

fn halves_of_quad(v: vec4<f32>) -> vec2<u32> {
    return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
}
