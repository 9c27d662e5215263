// 0.5 x (1 + tanh(z)) with z = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks & Gimpel 2016, arXiv
// 1606.08415)
// Computed as x / (1 + exp(-2 z)), which does not cancel and needs no tanh. The exponential is
// taken of -|2 z|, and x is clamped in z only, so nothing overflows.
// Needs: nothing. Gives: gelu_of.
fn gelu_of(x: f32) -> f32 {
    let v = clamp(x, -100.0, 100.0);
    let z2 = 1.5957691216057308 * (v + 0.044715 * v * v * v);
    let e = exp(-abs(z2));
    return x * (select(e, 1.0, x >= 0.0) / (1.0 + e));
}
