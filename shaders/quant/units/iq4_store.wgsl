// Stages 32 columns at ws[at..], of which g is the first group; zeros past the end of the row.
fn W_store(at: u32, raw: W_Raw, g: u32, live: bool) {
    let scale = W_scale_of(select(0.0, raw.held.scale, live));
    let low = raw.held.q;
    let high = low >> vec4<u32>(4u);
    ws[at] = mat2x4<f16>(W_look(low.x, scale), W_look(low.y, scale));
    ws[at + 1u] = mat2x4<f16>(W_look(low.z, scale), W_look(low.w, scale));
    ws[at + 2u] = mat2x4<f16>(W_look(high.x, scale), W_look(high.y, scale));
    ws[at + 3u] = mat2x4<f16>(W_look(high.z, scale), W_look(high.w, scale));
}
