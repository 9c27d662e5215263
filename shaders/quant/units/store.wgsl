// Stages 32 columns at ws[at..], of which g is the first group, for formats that have their quants
// in bytes. A byte in the significand of an f16 reads as 1024 + byte, so bytes need no conversion
// to floats.
fn W_halves_of(bytes: u32, scale: f32, less: f32) -> vec4<f16> {
    let even = unpack2x16float((bytes & 0x00ff00ffu) | 0x64006400u);
    let odd = unpack2x16float(((bytes >> 8u) & 0x00ff00ffu) | 0x64006400u);
    return vec4<f16>(fma(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(scale), vec4<f32>(-less)));
}

// Stores of 16 bytes, which take half the time of stores of 8.
fn W_group_store(at: u32, bytes: vec4<u32>, scale: f32, least: f32) {
    let less = 1024.0 * scale + least;
    ws[at] = mat2x4<f16>(W_halves_of(bytes.x, scale, less), W_halves_of(bytes.y, scale, less));
    ws[at + 1u] = mat2x4<f16>(W_halves_of(bytes.z, scale, less), W_halves_of(bytes.w, scale, less));
}

// Columns past the end of the row are staged as zeros.
fn W_store(at: u32, raw: W_Raw, g: u32, live: bool) {
    let groups = W_groups(raw, g);
    let scale = select(vec2<f32>(), groups.scale, vec2<bool>(live));
    let least = select(vec2<f32>(), groups.least, vec2<bool>(live));
    W_group_store(at, groups.first, scale.x, least.x);
    W_group_store(at + 2u, groups.second, scale.y, least.y);
}
