// The score of a query and a key from their product, and its derivative by the product.
// Needs: params.scale, params.softcap. Gives: score_slope.
fn score_slope(product: f32) -> vec2<f32> {
    let s = product * params.scale;
    if (params.softcap == 0.0) {
        return vec2<f32>(s, params.scale);
    }
    // Clamped: some drivers return NaN from tanh of large arguments. tanh(15) rounds to 1.
    let bent = tanh(clamp(s / params.softcap, -15.0, 15.0));
    return vec2<f32>(params.softcap * bent, params.scale * (1.0 - bent * bent));
}
