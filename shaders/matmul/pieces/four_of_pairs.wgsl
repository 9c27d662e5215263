// Needs: nothing. Gives: four_of_pairs.

// Four weights from the quants at even and odd indices. Quants are counted from the middle of
// their range, where weights are small. So the rounding of scale and least to f16, which a block
// shares, costs little.
fn four_of_pairs(even: vec2<f16>, odd: vec2<f16>, scale: f16, least: f16) -> vec4<f16> {
    let a = fma(even, vec2<f16>(scale), -vec2<f16>(least));
    let b = fma(odd, vec2<f16>(scale), -vec2<f16>(least));
    return vec4<f16>(a.x, b.x, a.y, b.y);
}
