// cap tanh(x / cap)                                                 (Gemma 2 report, arXiv 2408.00118, section 2)
// Drivers return NaN from tanh of large arguments and lose small ones, so it is made of exp and, near zero, of its series.
fn soft_cap(x: f32, cap: f32) -> f32 {
    let z = clamp(x / cap, -15.0, 15.0);
    let e = exp(-2.0 * abs(z));
    let z2 = z * z;
    // The terms after z^7 are below 4e-7 of the sum at the seam.
    let series = z * (1.0 + z2 * (-1.0 / 3.0 + z2 * (2.0 / 15.0 - z2 * (17.0 / 315.0))));
    return cap * select(sign(z) * (1.0 - e) / (1.0 + e), series, abs(z) < 0.25);
}
