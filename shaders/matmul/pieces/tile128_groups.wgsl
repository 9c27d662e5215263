// A slot of 32 columns of weights that a workgroup stages for cooperative matrices, in a format
// with units. A thread stages whole slots, so scales of 32 columns are unpacked once. A byte in the
// significand of an f16 reads as 1024 + byte, so bytes need no conversion to floats.
// Needs: w_Raw, ws, w_groups, slot_column, slot_live, slot_at. Gives: Ahead, ahead_store.
alias Ahead = w_Raw;

fn halves_of(bytes: u32, scale: f32, less: f32) -> vec4<f16> {
    let even = unpack2x16float((bytes & 0x00ff00ffu) | 0x64006400u);
    let odd = unpack2x16float(((bytes >> 8u) & 0x00ff00ffu) | 0x64006400u);
    return vec4<f16>(fma(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(scale), vec4<f32>(-less)));
}

// Stores of 16 bytes, which take half the time of stores of 8.
fn group_store(at: u32, bytes: vec4<u32>, scale: f32, least: f32) {
    let less = 1024.0 * scale + least;
    ws[at] = mat2x4<f16>(halves_of(bytes.x, scale, less), halves_of(bytes.y, scale, less));
    ws[at + 1u] = mat2x4<f16>(halves_of(bytes.z, scale, less), halves_of(bytes.w, scale, less));
}

fn ahead_store(raw: Ahead, k0: u32, slot: u32) {
    let groups = w_groups(raw, slot_column(k0, slot) >> 4u);
    let live = vec2<bool>(slot_live(k0, slot));
    let scale = select(vec2<f32>(), groups.scale, live);
    let least = select(vec2<f32>(), groups.least, live);
    let at = slot_at(slot);
    group_store(at, groups.first, scale.x, least.x);
    group_store(at + 2u, groups.second, scale.y, least.y);
}
