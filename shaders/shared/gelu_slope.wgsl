// The tanh form of GELU (.x) and its derivative (.y): with z = sqrt(2 / pi) (x + 0.044715 x^3) and
// s = 1 / (1 + exp(-2 z)), x s and s + x s (1 - s) 2 z'. The exponential is taken of -|2 z|, and x
// is clamped in z only, so nothing overflows.
// Needs: nothing. Gives: gelu_slope.
fn gelu_slope(x: f32) -> vec2<f32> {
    let v = clamp(x, -100.0, 100.0);
    let z2 = 1.5957691216057308 * (v + 0.044715 * v * v * v);
    let e = exp(-abs(z2));
    let s = select(e, 1.0, x >= 0.0) / (1.0 + e);
    let rest = e / ((1.0 + e) * (1.0 + e));
    return vec2<f32>(x * s, s + v * rest * (1.5957691216057308 * (1.0 + 0.134145 * v * v)));
}
