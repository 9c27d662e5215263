// Stages 32 columns at ws[at..], of which g is the first group; zeros past the end of the row.
// Each weight is rounded once, from its f32 product: a scale of IQ4_XS has more bits than an f16,
// and the oracle rounds only weights.
fn W_halves_of(codes: u32, scale: f32) -> vec4<f16> {
    return vec4<f16>(scale * vec4<f32>(W_values(codes)));
}

fn W_store(at: u32, raw: W_Raw, g: u32, live: bool) {
    let scale = 128.0 * select(0.0, raw.held.scale, live);
    let low = raw.held.q;
    let high = low >> vec4<u32>(4u);
    ws[at] = mat2x4<f16>(W_halves_of(low.x, scale), W_halves_of(low.y, scale));
    ws[at + 1u] = mat2x4<f16>(W_halves_of(low.z, scale), W_halves_of(low.w, scale));
    ws[at + 2u] = mat2x4<f16>(W_halves_of(high.x, scale), W_halves_of(high.y, scale));
    ws[at + 3u] = mat2x4<f16>(W_halves_of(high.z, scale), W_halves_of(high.w, scale));
}
